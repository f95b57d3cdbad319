import { isContention, rerunDelays } from './contention.js';
import { transactionOver } from './effects.js';
import { isRetryable, LeaseLostError } from './errors.js';
import { insist, insistOnNote } from './lease.js';
import type { Claim } from './record.js';
import { decisionOf, failedBy, keepsEffects, RECORDED, settlementOf, type Decision, type EngineOptions, type Run, type Work } from './run.js';
import type { DedupStore, Ending, Entered, Entry } from './store.js';

type Enter<Tx> = NonNullable<DedupStore<Tx>['enter']>;

/** How the handler ended: what it threw is heard by its caller only after the settlement is committed. */
type Finished<T> = { readonly value: T } | { readonly error: unknown };

/** What is known of one try to run in a transaction. */
interface Progress<T> {
  fence: number | undefined;
  effectStarted: boolean;
  /** The handler has asked for the transaction, so that its effects end with that. */
  isUsed: boolean;
  /** The handler has said how it ended. */
  isOver: boolean;
  /** Where the work has ended, whatever became of its transaction. */
  ending: Ending<Finished<T>> | undefined;
}

const runOf = <T, Tx>({ clock }: EngineOptions<Tx>, { scope, key }: Claim, entry: Entry<Tx>, progress: Progress<T>): Run<Tx> => ({
  scope, key,
  attempt: entry.attempt,
  fence: entry.fence,
  // The lock is the lease here: it lasts as long as the transaction. One of its own, because a request made with it listens.
  signal: new AbortController().signal,
  async effectStarted() {
    if (progress.isOver) throw new LeaseLostError(`The run under key "${key}" has ended: begin no further effect. Another request may run it now.`);
    // No effect begins before this is acknowledged. A note that stands although it seems to have failed is overtaken when the run settles, and counts when it is rolled back.
    await insistOnNote(clock, () => entry.startEffect());
    progress.effectStarted = true;
  },
  async transaction() {
    if (progress.isOver) throw transactionOver();
    progress.isUsed = true;
    return entry.open();
  },
});

/** Runs the handler inside the transaction, and says what is to be committed. */
const finish = async <T, Tx>(options: EngineOptions<Tx>, claim: Claim, entry: Entry<Tx>, progress: Progress<T>, work: Work<T, Tx>): Promise<Ending<Finished<T>>> => {
  try {
    const outcome = await work(runOf(options, claim, entry, progress));
    return { value: { value: outcome.value }, settlement: settlementOf(outcome, progress.effectStarted, options), keep: keepsEffects(outcome, options) };
  } catch (error) {
    // The database gave the transaction up: nothing can be written in it any more, and all of it may run again.
    if (isContention(error)) throw error;
    const settlement = settlementOf(failedBy(error), progress.effectStarted && !isRetryable(error), options);
    return { value: { error }, settlement, keep: false };
  } finally {
    progress.isOver = true;
  }
};

const executed = <T>({ value: finished, settlement }: Ending<Finished<T>>, operationRef: string): Decision<T> => {
  if ('error' in finished) throw finished.error;
  return { kind: 'executed', value: finished.value, record: RECORDED[settlement.to], operationRef };
};

/**
 * Records how a run ended that did nothing in its transaction, so that nothing was undone with it. To enter again as one
 * whose effects are idempotent is no second run: it brings the ending along.
 */
const recordAnew = async <T, Tx>({ clock }: EngineOptions<Tx>, enter: Enter<Tx>, claim: Claim, ending: Ending<Finished<T>>): Promise<Decision<T>> => {
  const entered: Entered<Finished<T>> = await insist(clock, () => enter({ ...claim, effects: 'idempotent' }, async () => ending));
  return entered.kind === 'ended' ? executed(entered.ending, entered.operationRef) : decisionOf(entered);
};

/** The transaction failed after its work had ended: the record tells whether it was committed all the same. */
const recall = async <T, Tx>(options: EngineOptions<Tx>, enter: Enter<Tx>, claim: Claim, { ending, fence, isUsed, effectStarted }: Progress<T>, error: unknown): Promise<Decision<T>> => {
  if (!ending || 'error' in ending.value) throw ending && 'error' in ending.value ? ending.value.error : error;
  try {
    const row = await insist(options.clock, () => options.store.get(claim));
    if (row?.owner === claim.owner && row.fence === fence && row.state === ending.settlement.to) return executed(ending, row.operationRef);
    if (!isUsed) return await recordAnew(options, enter, claim, ending);
  } catch (cause) {
    // What happened elsewhere has happened, recorded or not, and the key is in doubt.
    if (!isUsed && effectStarted) return { kind: 'executed', value: ending.value.value, record: 'unrecorded', operationRef: claim.operationRef };
    throw cause;
  }
  throw error;
};

/** `isKnown`: it came as far as to see the key. */
type Try<T> = { readonly decision: Decision<T> } | { readonly rolledBack: unknown; readonly isKnown: boolean };

const tryOnce = async <T, Tx>(options: EngineOptions<Tx>, enter: Enter<Tx>, claim: Claim, work: Work<T, Tx>): Promise<Try<T>> => {
  const progress: Progress<T> = { fence: undefined, effectStarted: false, isUsed: false, isOver: false, ending: undefined };
  const workWithin = async (entry: Entry<Tx>): Promise<Ending<Finished<T>>> => {
    progress.fence = entry.fence;
    progress.ending = await finish(options, claim, entry, progress, work);
    return progress.ending;
  };
  let entered: Entered<Finished<T>>;
  try {
    entered = await enter(claim, workWithin);
  } catch (error) {
    const mayRunAgain = progress.fence === undefined || (isContention(error) && !progress.effectStarted);
    if (mayRunAgain) return { rolledBack: error, isKnown: progress.fence !== undefined };
    return { decision: await recall(options, enter, claim, progress, error) };
  }
  return { decision: entered.kind === 'ended' ? executed(entered.ending, entered.operationRef) : decisionOf(entered) };
};

/**
 * Claims, runs and settles in one transaction of the store. When the database gives it up (deadlock, serialization
 * failure) it is run again, unless an effect elsewhere was announced. Rejects with what `work` threw, and with what a
 * commit failed with when the record does not show it.
 */
export const runInTransaction = async <T, Tx>(options: EngineOptions<Tx>, enter: Enter<Tx>, claim: Claim, work: Work<T, Tx>): Promise<Decision<T>> => {
  for (const delay of rerunDelays()) {
    const tried = await tryOnce(options, enter, claim, work);
    if ('decision' in tried) return tried.decision;
    await options.clock.sleep(delay);
  }
  const last = await tryOnce(options, enter, claim, work);
  return 'decision' in last ? last.decision : { kind: 'unavailable', cause: last.rolledBack, isKnown: last.isKnown };
};
