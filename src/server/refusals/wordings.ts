/** What is said of a refusal, in every dialect. */
export interface Wording {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Whether the same request may succeed later under the same key. */
  readonly retryable: boolean;
  /** Whether a new key is known not to make a second effect. */
  readonly safeNewKey: boolean;
}

/** The stable codes of refusals. */
export type RefusalCode =
  | 'idempotency_key_missing'
  | 'idempotency_key_invalid'
  | 'idempotency_scope_missing'
  | 'idempotency_unsupported'
  | 'idempotency_request_too_large'
  | 'idempotency_key_reused'
  | 'idempotency_in_progress'
  | 'idempotency_indeterminate'
  | 'idempotency_result_unavailable'
  | 'idempotency_result_expired'
  | 'idempotency_key_expired'
  | 'idempotency_store_unavailable'
  | 'handler_failed';

// The titles of 400 (missing), 409 (in progress) and 422 are the draft's own.
export const WORDINGS: Readonly<Record<RefusalCode, Wording>> = {
  idempotency_key_missing: {
    status: 400, title: 'Idempotency-Key is missing', retryable: false, safeNewKey: true,
    detail: 'This operation is not safe to repeat without a key. Send one key per operation, the same on every retry.',
  },
  idempotency_key_invalid: {
    status: 400, title: 'Idempotency-Key is invalid', retryable: false, safeNewKey: true,
    detail: 'The key cannot be read. Nothing was executed.',
  },
  idempotency_scope_missing: {
    status: 400, title: 'Idempotency-Key has no owner', retryable: false, safeNewKey: true,
    detail: 'The server cannot tell whose key this is, so it cannot protect the operation. Nothing was executed.',
  },
  idempotency_unsupported: {
    status: 501, title: 'Idempotency-Keys are not supported here', retryable: false, safeNewKey: true,
    detail: 'This operation does nothing with keys, so a repeat would be a second effect. Nothing was executed. Send it without a key if that is what you want.',
  },
  idempotency_request_too_large: {
    status: 413, title: 'Request is too large', retryable: false, safeNewKey: true,
    detail: 'The body is larger than this endpoint accepts. Nothing was executed.',
  },
  idempotency_key_reused: {
    status: 422, title: 'Idempotency-Key is already used', retryable: false, safeNewKey: false,
    detail: 'The key was first used for another request. Repeat that request unchanged, or use a new key for a new operation.',
  },
  idempotency_in_progress: {
    status: 409, title: 'A request is outstanding for this Idempotency-Key', retryable: true, safeNewKey: false,
    detail: 'The first request is still being processed. Repeat this one, with the same key, after Retry-After seconds.',
  },
  idempotency_indeterminate: {
    status: 409, title: 'The outcome of this Idempotency-Key is unknown', retryable: false, safeNewKey: false,
    detail: 'The first request ended without an answer and may have had its effect. Find out before trying again; a new key may repeat the effect.',
  },
  idempotency_result_unavailable: {
    status: 409, title: 'The answer for this Idempotency-Key was not kept', retryable: false, safeNewKey: false,
    detail: 'The request was executed; original_status is what it was answered with. It will not be executed again under this key.',
  },
  idempotency_result_expired: {
    status: 409, title: 'The answer for this Idempotency-Key is not kept any more', retryable: false, safeNewKey: false,
    detail: 'The request was executed; original_status is what it was answered with. It will not be executed again under this key.',
  },
  idempotency_key_expired: {
    status: 412, title: 'Idempotency-Key is expired', retryable: false, safeNewKey: false,
    detail: 'The key is older than this server remembers answers. Find out what became of the first request before using a new key.',
  },
  idempotency_store_unavailable: {
    status: 503, title: 'Idempotency-Keys cannot be checked now', retryable: true, safeNewKey: false,
    detail: 'Nothing was executed by this request. Repeat it, with the same key, after Retry-After seconds.',
  },
  handler_failed: {
    status: 500, title: 'The request failed', retryable: true, safeNewKey: false,
    detail: 'Repeat it, with the same key, to learn or complete its outcome.',
  },
};
