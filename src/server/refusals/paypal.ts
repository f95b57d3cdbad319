import { detailOf, originalOf, refuseWith, type Style, type Words } from './style.js';
import { WORDINGS } from './wordings.js';

const ISSUES: Words<string> = {
  idempotency_in_progress: [409, 'PREVIOUS_REQUEST_IN_PROGRESS'],
  idempotency_key_reused: [422, 'DUPLICATE_REQUEST_ID'],
  idempotency_key_missing: [400, 'MISSING_REQUIRED_PARAMETER'],
};

/** The error names of PayPal's REST APIs. */
const NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_REQUEST',
  409: 'RESOURCE_CONFLICT',
  422: 'UNPROCESSABLE_ENTITY',
  500: 'INTERNAL_SERVER_ERROR',
  503: 'SERVICE_UNAVAILABLE',
};

/** PayPal's `{ name, message, debug_id, details: [{ issue, description }] }`. */
export const paypal: Style = {
  refuse(refusal) {
    const { code, operationRef } = refusal;
    const [status, issue] = ISSUES[code] ?? [WORDINGS[code].status, code.toUpperCase()];
    const details = [{ issue, description: detailOf(refusal) }];
    const body = { name: NAMES[status] ?? 'INVALID_REQUEST', message: WORDINGS[code].title, debug_id: operationRef, details, ...originalOf(refusal) };
    return refuseWith(refusal, { status, body });
  },
  mark: () => [],
};
