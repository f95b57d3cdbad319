import type { Clock } from '../clock.js';
import { isRetryable } from './errors.js';
import { insist, keepLease } from './lease.js';
import type { Claim, ClaimResult, Effects, Hold, RecordRef, Resolution, Settlement, StoredAnswer } from './record.js';
import type { DedupStore } from './store.js';

/** What a run knows of itself. */
export interface Run extends RecordRef {
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
}

/** How a run ended, and the value that its caller gets. */
export type Outcome<T> = { readonly value: T } & (
  | { readonly kind: 'final'; readonly answer: StoredAnswer }
  /** Failed: the key is free for the same request, unless an effect had started. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Turned away before anything happened: the key is free for any request, unless an effect had started. */
  | { readonly kind: 'not-admitted' }
);

/** What is stored of an execution. */
export type RecordedAs = 'stored' | 'released' | 'indeterminate' | 'unrecorded';

/** What became of a request. */
export type Decision<T> =
  | { readonly kind: 'executed'; readonly value: T; readonly record: RecordedAs; readonly operationRef: string }
  | { readonly kind: 'replay'; readonly answer: StoredAnswer; readonly operationRef: string }
  /** The store could not be asked; nothing was run. */
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  | Exclude<ClaimResult, { kind: 'won' | 'completed' }>;

/** Asked about an indeterminate record before it is refused: what the world says about it. Undefined: nobody knows. */
export type Recover = (record: RecordRef & { readonly operationRef: string }) => Promise<Resolution | undefined>;

export interface EngineOptions {
  readonly store: DedupStore;
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
  readonly recover: Recover | undefined;
}

export interface Engine {
  /** Runs `execute` if nobody did under this key, else says what is known. Rejects only with what `execute` threw. */
  run<T>(request: RecordRef & { readonly fingerprint: string; readonly effects: Effects }, execute: (run: Run) => Promise<Outcome<T>>): Promise<Decision<T>>;
  /** Resolves when no run is in progress here any more. */
  idle(): Promise<void>;
}

/** ms between two looks of a duplicate that waits: short for quick handlers, and easy on the store for slow ones. */
const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 250;

/** Claims, and waits for a run in progress as long as the options allow. */
const claimOrWait = async ({ store, clock, wait }: EngineOptions, claim: Claim): Promise<ClaimResult> => {
  let waited = 0;
  for (let poll = FIRST_POLL_MS; ; poll = Math.min(poll * 2, LONGEST_POLL_MS)) {
    const result = await insist(clock, () => store.claim(claim));
    if (result.kind !== 'in-progress' || waited >= wait) return result;
    const delay = Math.min(poll, wait - waited);
    await clock.sleep(delay);
    waited += delay;
  }
};

const claimOrRecover = async (options: EngineOptions, claim: Claim): Promise<ClaimResult> => {
  const result = await claimOrWait(options, claim);
  if (result.kind !== 'indeterminate') return result;
  const resolution = await options.recover?.({ scope: claim.scope, key: claim.key, operationRef: result.operationRef });
  if (!resolution) return result;
  await insist(options.clock, () => options.store.resolve(claim, resolution));
  return claimOrWait(options, claim);
};

const settlementOf = <T>(outcome: Outcome<T>, effectStarted: boolean, { retention, keyRetention }: EngineOptions): Settlement => {
  if (outcome.kind === 'final') return { to: 'completed', answer: outcome.answer, retention, keyRetention };
  if (!effectStarted) return { to: 'retryable', keepFingerprint: outcome.kind === 'failed', keyRetention };
  return { to: 'indeterminate', reason: outcome.kind === 'failed' ? outcome.reason : 'turned away after an effect had started' };
};

const RECORD = { completed: 'stored', retryable: 'released', indeterminate: 'indeterminate' } as const;

/** The run lost its key: the record counts, not what the run thinks. */
const overruled = async <T>({ store, lease }: EngineOptions, hold: Hold, operationRef: string): Promise<Decision<T>> => {
  const row = await store.get(hold);
  if (row?.state === 'completed' && row.answer) return { kind: 'replay', answer: row.answer, operationRef: row.operationRef };
  return { kind: 'in-progress', leaseLeft: lease, operationRef };
};

const record = async <T>(options: EngineOptions, hold: Hold, operationRef: string, value: T, settlement: Settlement): Promise<Decision<T>> => {
  try {
    const held = await insist(options.clock, () => options.store.settle(hold, settlement));
    return held ? { kind: 'executed', value, record: RECORD[settlement.to], operationRef } : await overruled(options, hold, operationRef);
  } catch {
    // The lease will end by itself, into doubt: never into a second run of an effect that happened.
    return { kind: 'executed', value, record: 'unrecorded', operationRef };
  }
};

const execute = async <T>(options: EngineOptions, hold: Hold, won: ClaimResult & { kind: 'won' }, work: (run: Run) => Promise<Outcome<T>>): Promise<Decision<T>> => {
  const { attempt, fence, operationRef } = won;
  const lease = keepLease(options.store, options.clock, hold, options.lease);
  const run: Run = { scope: hold.scope, key: hold.key, fence, attempt, signal: lease.signal, effectStarted: () => lease.startEffect() };
  try {
    const outcome = await work(run);
    return await record(options, hold, operationRef, outcome.value, settlementOf(outcome, lease.effectStarted, options));
  } catch (error) {
    const failed: Outcome<undefined> = { kind: 'failed', reason: error instanceof Error ? error.name : typeof error, value: undefined };
    const settlement = settlementOf(failed, lease.effectStarted && !isRetryable(error), options);
    const decision = await record<T | undefined>(options, hold, operationRef, undefined, settlement);
    if (decision.kind === 'executed') throw error;
    return decision;
  } finally {
    lease.end();
  }
};

/** Storage-agnostic claim, execute, store, replay. It knows no HTTP and keeps no time: leases and expiry are the store's. */
export const createEngine = (options: EngineOptions): Engine => {
  const running = new Set<Promise<unknown>>();
  return {
    async run(request, work) {
      const { newId, lease, keyRetention, onExpired } = options;
      const claim: Claim = { ...request, owner: newId(), operationRef: newId(), lease, keyRetention, onExpired };
      let claimed: ClaimResult;
      try {
        claimed = await claimOrRecover(options, claim);
      } catch (cause) {
        return { kind: 'unavailable', cause };
      }
      if (claimed.kind === 'completed') return { kind: 'replay', answer: claimed.answer, operationRef: claimed.operationRef };
      if (claimed.kind !== 'won') return claimed;
      const run = execute(options, { scope: claim.scope, key: claim.key, owner: claim.owner, fence: claimed.fence }, claimed, work);
      running.add(run);
      try {
        return await run;
      } finally {
        running.delete(run);
      }
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
};
