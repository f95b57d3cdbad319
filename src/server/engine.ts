import { insist } from './lease.js';
import { runUnderLease } from './leased-run.js';
import type { Claim, Effects, RecordRef, Resolution } from './record.js';
import { decisionOf, type Decision, type EngineOptions, type Work } from './run.js';
import { runInTransaction } from './transactional-run.js';
import { releaseUnused } from './unused-claim.js';

export interface Engine<Tx = unknown> {
  /**
   * Claims the key and executes, or says why not. The promise of the execution settles with the run, whatever becomes of
   * the caller. Rejects only with what `work` throws.
   */
  run<T>(request: EngineRequest, work: Work<T, Tx>): Promise<Decision<T>>;
  /** Resolves when no run is in progress here any more. */
  idle(): Promise<void>;
}

/** What is to be executed at most once. */
export interface EngineRequest extends RecordRef {
  readonly fingerprint: string;
  readonly effects: Effects;
  /** ms since 1970, where the key tells. */
  readonly keyMadeAt?: number | undefined;
  /** Asked before doubt is told, by the reference of the operation: what the world says about it. Undefined: nobody knows. */
  readonly recover?: ((operationRef: string) => Promise<Resolution | undefined>) | undefined;
}

/** ms between two looks of a duplicate that waits: short for quick handlers, and easy on the store for slow ones. */
const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 250;

/** One claim, and the run if it wins. */
const claimAndRun = async <T, Tx>(options: EngineOptions<Tx>, claim: Claim, work: Work<T, Tx>): Promise<Decision<T>> => {
  const { store, clock } = options;
  if (store.enter) return runInTransaction(options, store.enter, claim, work);
  let claimed;
  try {
    claimed = await insist(clock, () => store.claim(claim));
  } catch (cause) {
    void releaseUnused(store, clock, claim);
    return { kind: 'unavailable', cause, isKnown: false };
  }
  if (claimed.kind !== 'won') return decisionOf(claimed);
  return runUnderLease(options, { scope: claim.scope, key: claim.key, owner: claim.owner, fence: claimed.fence }, claimed, work);
};

/** What follows where the key has been seen before. */
const known = <T>(decision: Decision<T>): Decision<T> => (decision.kind === 'unavailable' ? { ...decision, isKnown: true } : decision);

/** Waits for a run in progress as long as the options allow. */
const runOrWait = async <T, Tx>(options: EngineOptions<Tx>, claim: Claim, work: Work<T, Tx>): Promise<Decision<T>> => {
  const { clock, wait } = options;
  let waited = 0;
  for (let poll = FIRST_POLL_MS; ; poll = Math.min(poll * 2, LONGEST_POLL_MS)) {
    const decision = await claimAndRun(options, claim, work);
    if (decision.kind !== 'in-progress' || waited >= wait) return waited > 0 ? known(decision) : decision;
    const delay = Math.min(poll, wait - waited);
    await clock.sleep(delay);
    waited += delay;
  }
};

const runOrRecover = async <T, Tx>(options: EngineOptions<Tx>, claim: Claim, recover: EngineRequest['recover'], work: Work<T, Tx>): Promise<Decision<T>> => {
  const decision = await runOrWait(options, claim, work);
  if (decision.kind !== 'indeterminate') return decision;
  try {
    const resolution = await recover?.(decision.operationRef);
    if (!resolution) return decision;
    await insist(options.clock, () => options.store.resolve(claim, resolution));
  } catch (cause) {
    return { kind: 'unavailable', cause, isKnown: true };
  }
  return known(await runOrWait(options, claim, work));
};

/** Storage-agnostic claim, execute, store, replay. It knows no HTTP and keeps no time: leases and expiry are the store's. */
export const createEngine = <Tx = unknown>(options: EngineOptions<Tx>): Engine<Tx> => {
  const running = new Set<Promise<unknown>>();
  return {
    async run({ recover, ...request }, work) {
      const { newId, lease, keyRetention, onExpired } = options;
      const id = newId();
      const claim: Claim = { ...request, owner: id, operationRef: id, lease, keyRetention, onExpired };
      const run = runOrRecover(options, claim, recover, work);
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
