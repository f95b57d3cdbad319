import type { HeaderList } from '../record.js';
import { detailOf, originalOf, refuseWith, type Style } from './style.js';
import { WORDINGS, type RefusalCode } from './wordings.js';

const ACCEPTED: HeaderList = [['Repeatability-Result', 'accepted']];
const REJECTED: HeaderList = [['Repeatability-Result', 'rejected']];

/** What is said of the two headers themselves. The rest is about the operation, or about neither. */
const RESULTS: Partial<Readonly<Record<RefusalCode, HeaderList>>> = {
  idempotency_key_invalid: REJECTED,
  idempotency_key_reused: REJECTED,
  idempotency_key_expired: REJECTED,
  idempotency_unsupported: REJECTED,
  idempotency_in_progress: ACCEPTED,
};

/** Azure's `{ error: { code, message } }` and `x-ms-error-code`, with the verdict of OASIS Repeatable Requests. */
export const azure: Style = {
  refuse(refusal) {
    const { code } = refusal;
    const status = code === 'idempotency_key_reused' ? 400 : WORDINGS[code].status;
    const body = { error: { code, message: detailOf(refusal) }, ...originalOf(refusal) };
    return refuseWith(refusal, { status, body, headers: [['x-ms-error-code', code], ...(RESULTS[code] ?? [])] });
  },
  mark: mark => (mark === 'none' || mark === 'ignored' ? [] : ACCEPTED),
};
