import type { Profile, RefusalStyle } from '../profiles/profile.js';
import type { HeaderList, StoredAnswer } from './record.js';
import { adyen } from './refusals/adyen.js';
import { azure } from './refusals/azure.js';
import { gocardless } from './refusals/gocardless.js';
import { paypal } from './refusals/paypal.js';
import { problem } from './refusals/problem.js';
import { square } from './refusals/square.js';
import { stripe } from './refusals/stripe.js';
import type { Mark, Refusal, Style } from './refusals/style.js';
import type { Decision } from './run.js';

export type { Mark, Refusal } from './refusals/style.js';
export type { RefusalCode } from './refusals/wordings.js';

const STYLES: Readonly<Record<RefusalStyle, Style>> = { problem, stripe, adyen, paypal, square, gocardless, azure };

/** The answer that a profile gives to a refusal. */
export const refusalResponse = (profile: Profile, refusal: Refusal): Response => STYLES[profile.refusals].refuse(refusal);

/** The headers by which a profile says what an answer is. */
export const marksOf = (profile: Profile, mark: Mark, status: number): HeaderList => STYLES[profile.refusals].mark(mark, status);

/** The refusal that names what is there already; undefined where the profile has none. */
export const conflictOf = (profile: Profile, answer: StoredAnswer): Response | undefined => STYLES[profile.refusals].conflict?.(answer);

/** No sooner than this, whatever is left of a lease: a client that asks at once learns nothing. */
const MIN_RETRY_AFTER_MS = 1000;

/** Why a request is neither executed nor answered from the store, of a replay: why it has no answer. Undefined when it was executed. `maxRetryAfter` in ms. */
export const refusalOf = (decision: Decision<unknown>, maxRetryAfter: number): Refusal | undefined => {
  switch (decision.kind) {
    case 'replay': {
      const { omitted, status } = decision.answer;
      const code = omitted === 'expired' ? 'idempotency_result_expired' : 'idempotency_result_unavailable';
      return { code, originalStatus: status, operationRef: decision.operationRef };
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
