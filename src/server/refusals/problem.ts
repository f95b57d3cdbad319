import { detailOf, originalOf, refuseWith, type Style } from './style.js';
import { WORDINGS } from './wordings.js';

/** RFC 9457, with the members that tell a client what it may do. */
export const problem: Style = {
  refuse(refusal) {
    const { code, operationRef, safeNewKey = WORDINGS[code].safeNewKey } = refusal;
    const { status, title, retryable } = WORDINGS[code];
    const body = {
      type: `urn:samekey:problem:${code}`,
      title,
      status,
      detail: detailOf(refusal),
      ...(operationRef !== undefined && { instance: `urn:uuid:${operationRef}`, operation_ref: operationRef }),
      code,
      retryable,
      safe_new_key: safeNewKey,
      ...originalOf(refusal),
    };
    return refuseWith(refusal, { status, body, type: 'application/problem+json' });
  },
  mark: mark => (mark === 'replayed' ? [['Idempotency-Status', mark], ['Idempotent-Replayed', 'true']] : [['Idempotency-Status', mark]]),
};
