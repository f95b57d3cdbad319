import type { HeaderList } from '../record.js';
import { detailOf, originalOf, refuseWith, type Style, type Words } from './style.js';
import { WORDINGS } from './wordings.js';

const WORDS: Words<{ readonly type: string; readonly code?: string }> = {
  idempotency_key_reused: [400, { type: 'idempotency_error' }],
  idempotency_in_progress: [409, { type: 'invalid_request_error', code: 'idempotency_key_in_use' }],
  idempotency_key_missing: [400, { type: 'invalid_request_error' }],
  idempotency_key_invalid: [400, { type: 'invalid_request_error' }],
};

/** Stripe's `{ error: { type, code, message } }`, with its verdict on every refusal. */
export const stripe: Style = {
  refuse(refusal) {
    const { code } = refusal;
    const [status, words] = WORDS[code] ?? [WORDINGS[code].status, { type: 'api_error' }];
    const body = { error: { code, ...words, message: detailOf(refusal) }, ...originalOf(refusal) };
    return refuseWith(refusal, { status, body, headers: [['Stripe-Should-Retry', String(WORDINGS[code].retryable)]] });
  },
  mark(mark, status) {
    // A saved 500 can only be replayed: Stripe tells its clients not to try.
    const verdict: HeaderList = status >= 500 && (mark === 'stored' || mark === 'replayed') ? [['Stripe-Should-Retry', 'false']] : [];
    return mark === 'replayed' ? [...verdict, ['Idempotent-Replayed', 'true']] : verdict;
  },
};
