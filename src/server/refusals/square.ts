import { detailOf, originalOf, refuseWith, type Style, type Words } from './style.js';
import { WORDINGS } from './wordings.js';

const CODES: Words<string> = {
  idempotency_key_reused: [400, 'IDEMPOTENCY_KEY_REUSED'],
  idempotency_key_missing: [400, 'MISSING_REQUIRED_PARAMETER'],
  idempotency_key_invalid: [400, 'INVALID_VALUE'],
  idempotency_store_unavailable: [503, 'SERVICE_UNAVAILABLE'],
  handler_failed: [500, 'INTERNAL_SERVER_ERROR'],
};

/** Square's `{ errors: [{ category, code, detail, field }] }`. */
export const square: Style = {
  refuse(refusal) {
    const [status, code] = CODES[refusal.code] ?? [WORDINGS[refusal.code].status, refusal.code.toUpperCase()];
    const category = status >= 500 ? 'API_ERROR' : 'INVALID_REQUEST_ERROR';
    const body = { errors: [{ category, code, detail: detailOf(refusal), field: 'idempotency_key' }], ...originalOf(refusal) };
    return refuseWith(refusal, { status, body });
  },
  mark: () => [],
};
