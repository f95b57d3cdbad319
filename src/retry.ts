import { parseFixdate } from './imf-fixdate.js';
import type { Meaning } from './profiles/profile.js';

/** What the caller's `accept` says of an answer; undefined leaves it to the table below. */
export type Acceptance = 'succeeded' | 'rejected' | 'stored-rejection' | 'retry' | 'auth';

/** What came of one send. */
export type Outcome =
  /** `sent: false` only where it is proven that nothing left. */
  | { readonly kind: 'no-answer'; readonly sent: boolean }
  | AnswerOutcome;

export interface AnswerOutcome {
  readonly kind: 'answer';
  /** 0 for a redirect that the platform hides. */
  readonly status: number;
  /** The body was read to its end, and parses where it says it is JSON. */
  readonly whole: boolean;
  readonly meanings: ReadonlySet<Meaning>;
  readonly accepted?: Acceptance | undefined;
  readonly retryAfter: string | null;
  /** A problem `type` or `code` that the profile does not list. */
  readonly ownCode: boolean;
  /** `original_status` of an answer that is not available any more. */
  readonly originalStatus?: number | undefined;
  /** The server says that a new key would not be safe. */
  readonly unsafeNewKey: boolean;
}

/** What lies behind the operation when the outcome comes in. */
export interface History {
  readonly method: string;
  readonly conditional: boolean;
  /** Resends in this call or pass; waiting on 409 does not count. */
  readonly retries: number;
  /** 409 answers so far that were waited on. */
  readonly waits: number;
  /** ms since the first 409 that nothing explained. */
  readonly conflictFor: number;
  /** An earlier attempt, by any driver, may have been applied. */
  readonly ambiguous: boolean;
  /** The key may have been used outside this store. */
  readonly elsewhere: boolean;
  readonly sawSuccess: boolean;
  /** Somebody waits for the answer; false in a resume pass. */
  readonly caller: boolean;
  /** Credentials can be asked for once more. */
  readonly canRefresh: boolean;
  /** Wall time, ms. */
  readonly now: number;
  /** ms until the waiting ends. */
  readonly left: number;
}

export interface RetryPolicy {
  /** Resends after the first send. @default 7 */
  readonly limit: number;
  /** Longest backoff, ms. @default 8000 */
  readonly backoffLimit: number;
  /** Backoff before jitter for the n-th resend (from 1), ms. @default 300 · 2^(n−1) */
  readonly delay: (attempt: number) => number;
  /** Full jitter, none, or one's own. @default true */
  readonly jitter: boolean | ((delay: number) => number);
  /** Longest Retry-After that is obeyed, ms. @default 60000 */
  readonly maxRetryAfter: number;
  /** How long an unexplained 409 is waited on, ms. @default 15000 */
  readonly conflictWait: number;
}

/** What to do about an outcome, and in a word why. */
export type Decision =
  | { readonly action: 'settle'; readonly reason: Verdict }
  | { readonly action: 'reject'; readonly reason: Verdict; readonly stored: boolean; readonly admitted: boolean }
  | { readonly action: 'retry' | 'wait' | 'giveUp'; readonly reason: Verdict; readonly delay: number }
  | { readonly action: 'park'; readonly reason: Verdict; readonly as: 'auth' | 'redirected' }
  | { readonly action: 'inDoubt'; readonly reason: Verdict };

/** What an outcome proves, before the past of the operation is weighed. */
export type Verdict =
  | 'no-answer' | 'cut-off' | 'success' | 'already-absent' | 'answer-unavailable' | 'stored-refusal' | 'stored-error' | 'in-progress'
  | 'key-reused' | 'indeterminate' | 'conflict' | 'refusal' | 'not-admitted' | 'unprotected' | 'server-error' | 'told-not-to-retry'
  | 'asked-to-retry' | 'compare' | 'redirected';

/** Shortest wait before a resend, ms: a server that says "now" gets at least this much air. */
export const MIN_BACKOFF_MS = 100;

/** Unexplained 409 answers before they can count as a refusal. */
const MIN_CONFLICTS = 3;

export const defaultRetry: RetryPolicy = {
  limit: 7,
  backoffLimit: 8_000,
  delay: attempt => 300 * 2 ** (attempt - 1),
  jitter: true,
  maxRetryAfter: 60_000,
  conflictWait: 15_000,
};

/**
 * Reads Retry-After (RFC 9110 10.2.3): whole seconds or an IMF-fixdate, nothing that only resembles them.
 *
 * @returns ms from `now`, not negative; undefined when missing, malformed, negative, fractional or given twice
 */
export const parseRetryAfter = (value: string | null, now: number): number | undefined => {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const date = parseFixdate(value);
  return date === undefined ? undefined : Math.max(0, date - now);
};

const between = (status: number, low: number, high: number): boolean => status >= low && status < high;
/** Refused for now: the same request may be taken later. */
const isBusy = (status: number): boolean => [408, 425, 429].includes(status);
const isStoredStatus = (answer: AnswerOutcome, low: number): boolean =>
  (answer.meanings.has('replayed') || answer.meanings.has('stored')) && between(answer.status, low, low + 100);
const isUnavailable = (answer: AnswerOutcome, low: number, high: number): boolean =>
  answer.meanings.has('result-unavailable') && between(answer.originalStatus ?? 0, low, high);

type Rule = readonly [verdict: Verdict, when: (answer: AnswerOutcome, history: History) => boolean];

/** The first rule that holds says what an answer proves. Each line is a sentence of the contract; the last one always holds. */
const RULES: readonly Rule[] = [
  ['cut-off', a => !a.whole],
  ['success', a => a.accepted === 'succeeded'],
  ['stored-refusal', a => a.accepted === 'stored-rejection'],
  ['refusal', a => a.accepted === 'rejected'],
  ['asked-to-retry', a => a.accepted === 'retry'],
  ['not-admitted', a => a.accepted === 'auth'],
  ['success', a => between(a.status, 200, 300) || a.status === 303],
  // After an attempt of ours that may have made it, it is ours.
  ['success', (a, h) => a.meanings.has('already-done') && h.ambiguous],
  ['compare', a => a.meanings.has('already-done')],
  ['stored-refusal', a => isStoredStatus(a, 400)],
  ['stored-error', a => isStoredStatus(a, 500)],
  ['answer-unavailable', a => isUnavailable(a, 200, 400)],
  ['stored-refusal', a => isUnavailable(a, 400, 500)],
  ['indeterminate', a => a.meanings.has('result-unavailable') || a.meanings.has('indeterminate') || a.meanings.has('key-expired')],
  ['in-progress', a => a.meanings.has('in-progress')],
  ['key-reused', a => a.meanings.has('key-reused')],
  // Servers say it of what they will answer yet, too; that is waited for.
  ['indeterminate', a => a.unsafeNewKey && a.status < 500 && !isBusy(a.status)],
  ['unprotected', a => a.meanings.has('unprotected')],
  ['told-not-to-retry', a => a.meanings.has('should-not-retry') && a.status >= 500],
  ['asked-to-retry', a => a.meanings.has('should-retry')],
  ['refusal', a => a.status === 409 && (a.ownCode || a.meanings.has('should-not-retry'))],
  ['in-progress', a => a.status === 409 && a.retryAfter !== null],
  // Nobody else can be at work under a key that never left this store.
  ['refusal', (a, h) => a.status === 409 && !h.ambiguous && !h.elsewhere],
  ['conflict', a => a.status === 409],
  ['server-error', a => a.status >= 500 || isBusy(a.status)],
  ['not-admitted', a => [401, 403, 407, 421, 423, 431].includes(a.status)],
  ['already-absent', (a, h) => [404, 410].includes(a.status) && h.method === 'DELETE' && h.ambiguous],
  ['compare', (a, h) => a.status === 412 && h.conditional && h.ambiguous],
  ['redirected', a => a.status < 400],
  ['refusal', () => true],
];

export const verdictOf = (outcome: Outcome, history: History): Verdict =>
  outcome.kind === 'no-answer' ? 'no-answer' : (RULES.find(([, when]) => when(outcome, history))?.[0] ?? 'refusal');

/** Whether the server may have applied the request without the operation being able to know it from this outcome. */
export const isAmbiguous = (outcome: Outcome, verdict: Verdict): boolean => {
  if (outcome.kind === 'no-answer') return outcome.sent;
  return verdict === 'cut-off' || verdict === 'in-progress' || outcome.status === 408 || (outcome.status >= 500 && outcome.status !== 501);
};

const backoff = (attempt: number, policy: RetryPolicy, random: () => number): number => {
  const delay = Math.min(policy.delay(attempt), policy.backoffLimit);
  const jittered = typeof policy.jitter === 'function' ? policy.jitter(delay) : policy.jitter ? delay * random() : delay;
  // A jitter of one's own may give no number at all.
  return Math.max(MIN_BACKOFF_MS, Number.isFinite(jittered) ? jittered : delay);
};

const schedule = (verdict: Verdict, outcome: Outcome, history: History, policy: RetryPolicy, random: () => number): Decision => {
  const waits = verdict === 'in-progress' || verdict === 'conflict';
  const asked = outcome.kind === 'answer' ? parseRetryAfter(outcome.retryAfter, history.now) : undefined;
  const delay =
    asked === undefined
      ? backoff((waits ? history.waits : history.retries) + 1, policy, random)
      : Math.max(MIN_BACKOFF_MS, Math.min(asked, policy.maxRetryAfter));
  const told = outcome.kind === 'answer' && outcome.meanings.has('should-not-retry');
  const over = told || delay > history.left || (!waits && history.retries >= policy.limit);
  return { action: over ? 'giveUp' : waits ? 'wait' : 'retry', reason: verdict, delay };
};

const refuse = (verdict: Verdict, stored: boolean, history: History): Decision =>
  history.sawSuccess || (history.ambiguous && !stored)
    ? { action: 'inDoubt', reason: verdict }
    : { action: 'reject', reason: verdict, stored, admitted: true };

const refuseAdmission = (outcome: Outcome, history: History): Decision => {
  const reason = 'not-admitted';
  if (history.canRefresh && outcome.kind === 'answer' && outcome.status === 401) return { action: 'retry', reason, delay: 0 };
  return history.caller && !history.ambiguous && !history.sawSuccess
    ? { action: 'reject', reason, stored: false, admitted: false }
    : { action: 'park', reason, as: 'auth' };
};

/**
 * What to do about one outcome. Pure: time comes in with `history`, chance with `random`; no network, no store.
 *
 * `giveUp` ends the waiting, not the operation: it stays pending and is due again after `delay` ms.
 */
export const decide = (outcome: Outcome, history: History, policy: RetryPolicy, random: () => number): Decision => {
  const reason = verdictOf(outcome, history);
  switch (reason) {
    case 'success':
    case 'already-absent':
    case 'answer-unavailable':
      return { action: 'settle', reason };
    case 'stored-refusal':
      return refuse(reason, true, history);
    case 'refusal':
      return refuse(reason, false, history);
    case 'unprotected':
      return refuse(reason, false, isAmbiguous(outcome, reason) ? { ...history, ambiguous: true } : history);
    case 'not-admitted':
      return refuseAdmission(outcome, history);
    case 'redirected':
      return { action: 'park', reason, as: 'redirected' };
    case 'conflict':
      return history.waits >= MIN_CONFLICTS && history.conflictFor >= policy.conflictWait
        ? refuse('refusal', false, history)
        : schedule(reason, outcome, history, policy, random);
    case 'no-answer':
    case 'cut-off':
    case 'in-progress':
    case 'server-error':
    case 'asked-to-retry':
      return schedule(reason, outcome, history, policy, random);
    default:
      return { action: 'inDoubt', reason };
  }
};
