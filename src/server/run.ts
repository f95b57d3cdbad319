import type { Clock } from '../clock.js';
import type { ClaimResult, RecordRef, Settlement, StoredAnswer } from './record.js';
import type { DedupStore } from './store.js';

/** What a run knows of itself. */
export interface Run<Tx = unknown> extends RecordRef {
  /** 1 for the first run under the key, more after releases and takeovers. */
  readonly attempt: number;
  readonly fence: number;
  /** Aborts when the lease is lost (`LeaseLostError`), never because a client went away. */
  readonly signal: AbortSignal;
  /**
   * Notes durably that an effect may happen from now on; await it before the effect. A later failure then makes the key
   * indeterminate instead of free. Rejects with `LeaseLostError` when the effect must not begin.
   */
  effectStarted(): Promise<void>;
  /** The transaction that records the answer. Rejects where the store has none. */
  transaction(): Promise<Tx>;
}

/** How a run ended, and the value that its caller gets. */
export type Outcome<T> = { readonly value: T } & (
  | { readonly kind: 'final'; readonly answer: StoredAnswer }
  /** Failed: the key is free for the same request, unless an effect had started. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Refused for good, in a dialect that keeps no refusals: the key is free for the same request. */
  | { readonly kind: 'refused' }
  /** Turned away before anything happened: the key is free for any request, unless an effect had started. */
  | { readonly kind: 'not-admitted' }
);

/** What is stored of an execution. */
export type RecordedAs = 'stored' | 'released' | 'indeterminate' | 'unrecorded';

/** What became of a request. */
export type Decision<T> =
  | { readonly kind: 'executed'; readonly value: T; readonly record: RecordedAs; readonly operationRef: string }
  | { readonly kind: 'replay'; readonly answer: StoredAnswer; readonly operationRef: string }
  /**
   * The store could not be asked, or rolled everything back; nothing was done by this request. `isKnown`: the key was seen
   * before that, so that an earlier request may have done something.
   */
  | { readonly kind: 'unavailable'; readonly cause: unknown; readonly isKnown: boolean }
  | Exclude<ClaimResult, { kind: 'won' | 'completed' }>;

export interface EngineOptions<Tx = unknown> {
  readonly store: DedupStore<Tx>;
  readonly clock: Clock;
  /** Makes the ids of owners and operations. */
  readonly newId: () => string;
  /** ms */
  readonly lease: number;
  /** ms from completion for which the answer is replayed. */
  readonly retention: number;
  /** ms from completion for which the key is remembered. */
  readonly keyRetention: number;
  readonly onExpired: 'fresh' | 'refuse';
  /** ms that a duplicate waits for the run in progress before it is refused. */
  readonly wait: number;
  /** Whether what a refused request (status 400 and more) did in its transaction stays. */
  readonly commitOnError: boolean;
}

/** The work of one request. It may be called again when its transaction was rolled back for no fault of its own. */
export type Work<T, Tx> = (run: Run<Tx>) => Promise<Outcome<T>>;

type Retention = Pick<EngineOptions, 'retention' | 'keyRetention'>;

export const settlementOf = <T>(outcome: Outcome<T>, effectStarted: boolean, { retention, keyRetention }: Retention): Settlement => {
  if (outcome.kind === 'final') return { to: 'completed', answer: outcome.answer, retention, keyRetention };
  if (outcome.kind === 'refused') return { to: 'retryable', keepFingerprint: true, keyRetention };
  if (!effectStarted) return { to: 'retryable', keepFingerprint: outcome.kind === 'failed', keyRetention };
  return { to: 'indeterminate', reason: outcome.kind === 'failed' ? outcome.reason : 'turned away after an effect had started' };
};

/** Whether what the run did in its transaction stays: a refused request leaves no rows. */
export const keepsEffects = (outcome: Outcome<unknown>, { commitOnError }: Pick<EngineOptions, 'commitOnError'>): boolean =>
  outcome.kind === 'final' && (outcome.answer.status < 400 || commitOnError);

export const failedBy = (error: unknown): Outcome<undefined> => ({ kind: 'failed', reason: error instanceof Error ? error.name : typeof error, value: undefined });

export const RECORDED: Readonly<Record<Settlement['to'], RecordedAs>> = { completed: 'stored', retryable: 'released', indeterminate: 'indeterminate' };

/** What a result that is not a right to run means for its request. */
export const decisionOf = <T>(result: Exclude<ClaimResult, { kind: 'won' }>): Decision<T> =>
  result.kind === 'completed' ? { kind: 'replay', answer: result.answer, operationRef: result.operationRef } : result;
