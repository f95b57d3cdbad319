import type { Profile, RefusalStyle } from '../profiles/profile.js';
import type { Decision } from './run.js';
import type { HeaderList } from './record.js';

interface Wording {
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
const WORDINGS: Record<RefusalCode, Wording> = {
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

export interface Refusal {
  readonly code: RefusalCode;
  /** Said before the standing detail. */
  readonly detail?: string | undefined;
  /** ms */
  readonly retryAfter?: number | undefined;
  readonly safeNewKey?: boolean | undefined;
  readonly originalStatus?: number | undefined;
  readonly operationRef?: string | undefined;
}

/** What is said of an answer that is not a refusal. */
export type Mark = 'stored' | 'unrecorded' | 'replayed' | 'none' | 'ignored';

interface Style {
  refuse(refusal: Refusal, wording: Wording): Response;
  mark(mark: Mark, status: number): HeaderList;
}

const detailOf = (refusal: Refusal, wording: Wording): string => [refusal.detail, wording.detail].filter(Boolean).join(' ');

const retryAfterOf = ({ retryAfter }: Refusal): [string, string][] => (retryAfter === undefined ? [] : [['Retry-After', String(Math.ceil(retryAfter / 1000))]]);

const answer = (status: number, type: string, body: object, headers: [string, string][]): Response =>
  new Response(JSON.stringify(body), { status, headers: [['Content-Type', type], ['Cache-Control', 'no-store'], ...headers] });

/** RFC 9457, with the members that tell a client what it may do. */
const problem: Style = {
  refuse(refusal, wording) {
    const { code, operationRef, originalStatus, safeNewKey = wording.safeNewKey } = refusal;
    const body = {
      type: `urn:samekey:problem:${code}`,
      title: wording.title,
      status: wording.status,
      detail: detailOf(refusal, wording),
      ...(operationRef !== undefined && { instance: `urn:uuid:${operationRef}`, operation_ref: operationRef }),
      code,
      retryable: wording.retryable,
      safe_new_key: safeNewKey,
      ...(originalStatus !== undefined && { original_status: originalStatus }),
    };
    return answer(wording.status, 'application/problem+json', body, retryAfterOf(refusal));
  },
  mark: mark => (mark === 'replayed' ? [['Idempotency-Status', mark], ['Idempotent-Replayed', 'true']] : [['Idempotency-Status', mark]]),
};

/** Where Stripe has a word of its own for it. */
const STRIPE_WORDS: Partial<Record<RefusalCode, { readonly status: number; readonly type: string; readonly code?: string }>> = {
  idempotency_key_reused: { status: 400, type: 'idempotency_error' },
  idempotency_in_progress: { status: 409, type: 'invalid_request_error', code: 'idempotency_key_in_use' },
  idempotency_key_missing: { status: 400, type: 'invalid_request_error' },
  idempotency_key_invalid: { status: 400, type: 'invalid_request_error' },
};

const stripe: Style = {
  refuse(refusal, wording) {
    const { status, type, code = refusal.code } = STRIPE_WORDS[refusal.code] ?? { status: wording.status, type: 'api_error' };
    const verdict: [string, string] = ['Stripe-Should-Retry', String(wording.retryable)];
    const { originalStatus } = refusal;
    const body = { error: { type, code, message: detailOf(refusal, wording) }, ...(originalStatus !== undefined && { original_status: originalStatus }) };
    return answer(status, 'application/json', body, [verdict, ...retryAfterOf(refusal)]);
  },
  mark(mark, status) {
    // A saved 500 can only be replayed: Stripe tells its clients not to try.
    const verdict: HeaderList = status >= 500 && (mark === 'stored' || mark === 'replayed') ? [['Stripe-Should-Retry', 'false']] : [];
    return mark === 'replayed' ? [...verdict, ['Idempotent-Replayed', 'true']] : verdict;
  },
};

const STYLES: Record<RefusalStyle, Style> = { problem, stripe };

/** The answer that a profile gives to a refusal. */
export const refusalResponse = (profile: Profile, refusal: Refusal): Response => STYLES[profile.refusals].refuse(refusal, WORDINGS[refusal.code]);

/** The headers by which a profile says what an answer is. */
export const marksOf = (profile: Profile, mark: Mark, status: number): HeaderList => STYLES[profile.refusals].mark(mark, status);

/** No sooner than this, whatever is left of a lease: a client that asks at once learns nothing. */
const MIN_RETRY_AFTER_MS = 1000;

/** Why a request is neither executed nor answered from the store; undefined when it is. `maxRetryAfter` in ms. */
export const refusalOf = (decision: Decision<unknown>, maxRetryAfter: number): Refusal | undefined => {
  switch (decision.kind) {
    case 'replay': {
      const { omitted, status } = decision.answer;
      const code = omitted === 'expired' ? 'idempotency_result_expired' : 'idempotency_result_unavailable';
      return omitted && { code, originalStatus: status, operationRef: decision.operationRef };
    }
    case 'in-progress': {
      const retryAfter = Math.min(Math.max(decision.leaseLeft, MIN_RETRY_AFTER_MS), maxRetryAfter);
      return { code: 'idempotency_in_progress', retryAfter, operationRef: decision.operationRef };
    }
    case 'key-reused':
      return { code: 'idempotency_key_reused', safeNewKey: decision.safeNewKey, operationRef: decision.operationRef };
    case 'indeterminate':
      return { code: 'idempotency_indeterminate', operationRef: decision.operationRef };
    case 'key-expired':
      return { code: 'idempotency_key_expired', originalStatus: decision.originalStatus, operationRef: decision.operationRef };
    case 'unavailable':
      return { code: 'idempotency_store_unavailable', retryAfter: MIN_RETRY_AFTER_MS };
    default:
      return undefined;
  }
};
