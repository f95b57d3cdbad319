import { isContention, rerunDelays } from './contention.js';
import { effectsTransaction, type EffectsTransaction } from './effects.js';
import { isRetryable, LeaseLostError } from './errors.js';
import { insist, keepLease, type Lease } from './lease.js';
import type { ClaimResult, Hold, Settlement } from './record.js';
import { failedBy, keepsEffects, RECORDED, settlementOf, type Decision, type EngineOptions, type Outcome, type Run, type Work } from './run.js';

/** One run under a lease. */
interface LeasedRun<Tx> {
  readonly options: EngineOptions<Tx>;
  readonly hold: Hold;
  readonly lease: Lease;
  readonly effects: EffectsTransaction<Tx>;
  readonly operationRef: string;
}

/** The run lost its key: the record counts, not what the run thinks. */
const overruled = async <T, Tx>({ options: { store, lease }, hold, operationRef }: LeasedRun<Tx>): Promise<Decision<T>> => {
  const row = await store.get(hold);
  if (row?.state === 'completed' && row.answer) return { kind: 'replay', answer: row.answer, operationRef: row.operationRef };
  if (row?.state === 'indeterminate') return { kind: 'indeterminate', operationRef: row.operationRef };
  return { kind: 'in-progress', leaseLeft: lease, operationRef };
};

const record = async <T, Tx>(run: LeasedRun<Tx>, value: T, settlement: Settlement): Promise<Decision<T>> => {
  const { options, hold, operationRef } = run;
  try {
    const held = await insist(options.clock, () => options.store.settle(hold, settlement));
    return held ? { kind: 'executed', value, record: RECORDED[settlement.to], operationRef } : await overruled(run);
  } catch {
    // The lease will end by itself, into doubt: never into a second run of an effect that happened.
    return { kind: 'executed', value, record: 'unrecorded', operationRef };
  }
};

const lost = (hold: Hold): LeaseLostError =>
  new LeaseLostError(`The lease on key "${hold.key}" ended before the transaction did. What was done in it is rolled back; another request may run it now.`);

/** Effects and record are committed together; where another run took over, both are rolled back. */
const commit = async <T, Tx>(run: LeasedRun<Tx>, value: T, settlement: Settlement): Promise<Decision<T>> => {
  const { hold, effects, operationRef } = run;
  try {
    await effects.commit(async settle => {
      if (!(await settle(hold, settlement))) throw lost(hold);
    });
    return { kind: 'executed', value, record: RECORDED[settlement.to], operationRef };
  } catch (error) {
    if (error instanceof LeaseLostError) return overruled(run);
    throw error;
  }
};

const conclude = async <T, Tx>(run: LeasedRun<Tx>, outcome: Outcome<T>, effectStarted: boolean): Promise<Decision<T>> => {
  const { options, effects } = run;
  const settlement = settlementOf(outcome, effectStarted, options);
  if (effects.opened && keepsEffects(outcome, options)) return commit(run, outcome.value, settlement);
  const isUndone = await effects.rollBack();
  return record(run, outcome.value, isUndone ? settlement : { to: 'indeterminate', reason: 'its transaction was lost' });
};

/** The database gave the transaction up, which undid all of it, and nothing happened elsewhere. Undefined: it may run again. */
const giveUp = async <T, Tx>(run: LeasedRun<Tx>, error: unknown, mayRunAgain: boolean): Promise<Decision<T> | undefined> => {
  await run.effects.rollBack();
  if (mayRunAgain) return undefined;
  const decision = await record(run, undefined, settlementOf(failedBy(error), false, run.options));
  return decision.kind === 'executed' ? { kind: 'unavailable', cause: error, isKnown: true } : (decision as Decision<T>);
};

/** One try. Undefined: the database gave its transaction up, nothing happened elsewhere, so it may run again. */
const tryOnce = async <T, Tx>(run: LeasedRun<Tx>, attempt: number, work: Work<T, Tx>, isLast: boolean): Promise<Decision<T> | undefined> => {
  const { hold, lease, effects } = run;
  const known: Run<Tx> = { ...hold, attempt, signal: lease.signal, effectStarted: () => lease.startEffect(), transaction: () => effects.open() };
  try {
    return await conclude(run, await work(known), lease.effectStarted);
  } catch (error) {
    if (effects.opened && !lease.effectStarted && isContention(error)) return giveUp(run, error, !isLast && !lease.signal.aborted);
    // Also of a commit: where it did happen after all, the record says so and counts.
    const decision: Decision<T | undefined> = await conclude<T | undefined, Tx>(run, failedBy(error), lease.effectStarted && !isRetryable(error));
    if (decision.kind !== 'executed') return decision as Decision<T>;
    throw error;
  }
};

/** Runs `work` under the lease that was won, keeps it meanwhile, and settles the record. Rejects with what `work` threw. */
export const runUnderLease = async <T, Tx>(options: EngineOptions<Tx>, hold: Hold, won: ClaimResult & { kind: 'won' }, work: Work<T, Tx>): Promise<Decision<T>> => {
  const { store, clock } = options;
  const lease = keepLease(store, clock, hold, options.lease);
  const runOnce = (isLast: boolean): Promise<Decision<T> | undefined> =>
    tryOnce({ options, hold, lease, effects: effectsTransaction(store), operationRef: won.operationRef }, won.attempt, work, isLast);
  try {
    for (const delay of rerunDelays()) {
      const decision = await runOnce(false);
      if (decision) return decision;
      await clock.sleep(delay);
    }
    return (await runOnce(true)) as Decision<T>;
  } finally {
    lease.end();
  }
};
