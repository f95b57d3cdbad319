import { detailOf, originalOf, refuseWith, type Style, type Words } from './style.js';
import { WORDINGS } from './wordings.js';

const WORDS: Words<{ readonly errorCode: string; readonly message: string }> = {
  idempotency_in_progress: [409, { errorCode: '704', message: 'request already processed or in progress' }],
  idempotency_store_unavailable: [503, { errorCode: '703', message: 'required resource temporarily unavailable' }],
};

/** Adyen's `{ status, errorCode, message, errorType }`; `Transient-Error` says whether the same request may be sent again. */
export const adyen: Style = {
  refuse(refusal) {
    const { code, operationRef } = refusal;
    const [status, words] = WORDS[code] ?? [WORDINGS[code].status, { errorCode: code, message: detailOf(refusal) }];
    const body = { status, ...words, errorType: status >= 500 ? 'internal' : 'validation', pspReference: operationRef, ...originalOf(refusal) };
    return refuseWith(refusal, { status, body, headers: [['Transient-Error', String(WORDINGS[code].retryable)]] });
  },
  // Nothing but the echo of the key tells a repeat from a first answer.
  mark: () => [],
};
