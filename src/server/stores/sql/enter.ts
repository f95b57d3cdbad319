import { SamekeyError } from '../../../errors.js';
import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { sql, type Statement } from '../../../sql/statement.js';
import { hasCode } from '../../contention.js';
import { claimRecord, NO_LEASE, unlocked, type Claim, type ClaimResult, type DedupRecord } from '../../record.js';
import type { DedupStore, Ending, Entered, Entry } from '../../store.js';
import { isPlain, type SqlStoreOptions } from './mode.js';
import { columnsOf, heldColumns, settledColumns } from './row.js';
import { FIRST_REVISION, type SeenRow, type Table } from './table.js';
import { ensureWhole, markWhole } from './whole.js';

type Refused = Exclude<ClaimResult, { kind: 'won' }>;
type Work<Tx, T> = (entry: Entry<Tx>) => Promise<Ending<T>>;

/** A run that has ended, and the row that it makes of the one it began with. */
interface Finished<T> {
  readonly ending: Ending<T>;
  readonly seen: SeenRow;
  readonly next: DedupRecord;
}

/** Rolls a transaction back without losing how its work ended. */
class Undo<T> extends Error {
  readonly finished: Finished<T>;
  constructor(finished: Finished<T>) {
    super('The transaction is rolled back on purpose.');
    this.finished = finished;
  }
}

/** Times that a row vanishes (a purge) between its insert and its lock before that is called a failure. */
const MAX_ENTRIES = 10;

/** ms that a duplicate waits where nothing else is said: a client's patience, less than most handlers' limits. */
const LOCK_TIMEOUT_MS = 2_000;

/** A row that says only that the key was seen. Nobody holds it: to run is to lock it. */
const blank = ({ scope, key, fingerprint, operationRef, keyRetention }: Claim, now: number): DedupRecord => ({
  scope, key, state: 'in_progress', fingerprint, owner: '', fence: 0, attempts: 0, leaseUntil: NO_LEASE, effectStarted: false, operationRef,
  firstSeenAt: now, keyExpiresAt: now + keyRetention,
});

const insertBlank = (on: SqlExecutor, table: Table, claim: Claim): Promise<boolean> => {
  const { dialect } = table;
  return table.insert(on, { ...columnsOf(blank(claim, 0), dialect.later), lease_until: dialect.time(NO_LEASE) }, dialect.noWait);
};

/** Locks the row that this claim has just inserted: unless somebody was quicker, all of it is known. */
const lockInserted = async (on: SqlExecutor, table: Table, claim: Claim, lock: Statement): Promise<SeenRow | undefined> => {
  const glance = await table.glance(on, claim, lock);
  if (!glance) return undefined;
  const untouched = glance.revision === FIRST_REVISION && !glance.announced;
  return untouched ? { row: blank(claim, glance.now), revision: glance.revision, now: glance.now } : table.lock(on, claim, lock);
};

/** What is decided without a lock and without a write; undefined where the lock decides. */
const refusal = ({ row, now }: SeenRow, claim: Claim): Refused | undefined => {
  const { next, result } = claimRecord(row, claim, now);
  return next || result.kind === 'won' ? undefined : result;
};

/** Why an effect elsewhere cannot be announced. */
const noteBarrier = ({ dialect }: Table, { mode, isolation }: SqlStoreOptions): string | undefined => {
  // The note would outlive a rollback that takes the record itself away, and nobody could resolve it.
  if (mode === 'single-tx') return "effectStarted() needs a record that is committed before the effect, which 'single-tx' has not. Use mode: 'tx' for handlers with effects elsewhere.";
  // The run has read that there is no note, and in this database holds a lock on that until it ends.
  if (isolation === 'serializable' && dialect.readsLock) return "effectStarted() cannot be noted beside a serializable transaction of this database. Use mode: 'lease', or another isolation, for handlers with effects elsewhere.";
  return undefined;
};

const ended = <T>({ ending, next }: Finished<T>): Entered<T> => ({ kind: 'ended', ending, operationRef: next.operationRef });

/** Makes the two kinds of transaction in which a handler runs. */
export const entering = <Tx>(database: SqlDatabase<Tx>, table: Table, options: SqlStoreOptions): NonNullable<DedupStore<Tx>['enter']> => {
  const { mode, isolation, lockTimeout } = options;
  const { dialect } = table;
  const barrier = noteBarrier(table, options);

  /** What a key that is locked by somebody else, or gone, means for the claim. Undefined: begin again. */
  const busy = async (claim: Claim): Promise<Refused | undefined> => {
    const seen = await table.read(database, claim);
    return seen && (refusal(seen, claim) ?? { kind: 'in-progress', leaseLeft: 0, operationRef: seen.row.operationRef });
  };

  /** Runs the handler under the lock that `on` has. What it did stays only together with the settled row. */
  const runLocked = async <T>(on: SqlExecutor, tx: Tx, seen: SeenRow, claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
    const { next, result } = claimRecord(unlocked(seen.row), claim, seen.now);
    if (result.kind !== 'won' || !next) {
      if (next) await table.replace(on, seen, table.columns(next));
      return result as Refused;
    }
    const { fence, attempt, operationRef } = result;
    let opening: Promise<void> | undefined;
    const open = async (): Promise<Tx> => {
      await (opening ??= markWhole(table, on));
      return tx;
    };
    const note = (): Promise<void> => table.note(database, claim, fence);
    const startEffect = (): Promise<void> => (barrier === undefined ? note() : Promise.reject(new SamekeyError('NOT_POSSIBLE', barrier)));
    const ending = await work({ fence, attempt, operationRef, open, startEffect });
    const finished = { ending, seen, next };
    if (opening) await ensureWhole(table, on, note);
    if (opening && !ending.keep) throw new Undo(finished);
    const held = seen.row.fence === 0 ? heldColumns(next) : table.columns(next);
    if (await table.replace(on, seen, { ...held, ...settledColumns(ending.settlement, dialect.later) })) return ended(finished);
    throw new Error(`The row of key "${claim.key}" changed although it was locked. All was rolled back.`);
  };

  /** Settles a run whose transaction was rolled back, unless another one has got hold of the key meanwhile: then that one counts. */
  const settleUndone = async <T>(claim: Claim, finished: Finished<T>): Promise<Entered<T>> => {
    const columns = { ...table.columns(finished.next), ...settledColumns(finished.ending.settlement, dialect.later) };
    const settled = (await table.replace(database, finished.seen, columns)) || (await table.insert(database, columns));
    return settled ? ended(finished) : ((await busy(claim)) ?? ended(finished));
  };

  const undoable = async <T>(claim: Claim, transaction: Promise<Entered<T> | undefined>): Promise<Entered<T> | undefined> => {
    try {
      return await transaction;
    } catch (error) {
      if (error instanceof Undo) return settleUndone(claim, (error as Undo<T>).finished);
      throw error;
    }
  };

  const lockAndRun = <T>(claim: Claim, work: Work<Tx, T>, first: boolean): Promise<Entered<T> | undefined> => {
    const inTransaction = async (on: SqlExecutor, tx: Tx): Promise<Entered<T> | undefined> => {
      const seen = first ? await lockInserted(on, table, claim, dialect.skipLocked) : await table.lock(on, claim, dialect.skipLocked);
      return seen && runLocked(on, tx, seen, claim, work);
    };
    return undoable(claim, database.transaction(inTransaction, { isolation }));
  };

  /** What is known of a key without its lock: a refusal, or that it has a row. */
  const look = async (claim: Claim): Promise<Refused | 'found' | undefined> => {
    const seen = await table.read(database, claim);
    if (seen) return refusal(seen, claim) ?? 'found';
    if (isPlain(claim)) return undefined;
    const { result } = claimRecord(undefined, claim, await table.now(database));
    return result.kind === 'won' ? undefined : result;
  };

  /** Sees to it that the key has a row. `gone`: it was purged at this moment, or is just being inserted. */
  const arrive = async (claim: Claim): Promise<Refused | 'inserted' | 'found' | 'gone'> => {
    const looks = dialect.noWait !== undefined || !isPlain(claim);
    const before = looks ? await look(claim) : undefined;
    if (before) return before;
    return (await insertBlank(database, table, claim)) ? 'inserted' : ((await look(claim)) ?? 'gone');
  };

  const enterTx = async <T>(claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
    for (let entries = 0; entries < MAX_ENTRIES; entries += 1) {
      const arrived = await arrive(claim);
      if (typeof arrived === 'object') return arrived;
      const entered = arrived === 'gone' ? undefined : ((await lockAndRun(claim, work, arrived === 'inserted')) ?? (await busy(claim)));
      if (entered) return entered;
    }
    // An insert that does not wait cannot tell a row that is there from one that another insert is about to commit.
    if (dialect.noWait) return { kind: 'in-progress', leaseLeft: 0, operationRef: claim.operationRef };
    throw new Error(`The row of key "${claim.key}" vanished ${MAX_ENTRIES} times before it could be locked. Is something else deleting from the table?`);
  };

  const enterSingleTx = async <T>(claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
    const timeout = dialect.lockTimeout;
    if (!timeout) throw new TypeError("This database has no lock timeout for one transaction, so mode 'single-tx' is not possible. Use 'tx'.");
    let began = false;
    const inTransaction = async (on: SqlExecutor, tx: Tx): Promise<Entered<T>> => {
      await table.run(on, timeout.set(lockTimeout ?? LOCK_TIMEOUT_MS));
      await insertBlank(on, table, claim);
      const seen = await table.lock(on, claim, sql`FOR UPDATE`);
      await table.run(on, timeout.reset);
      if (!seen) throw new Error(`The row of key "${claim.key}" cannot be seen by the transaction that inserted it.`);
      began = true;
      return runLocked(on, tx, seen, claim, work);
    };
    try {
      return (await undoable(claim, database.transaction(inTransaction, { isolation: 'read committed' }))) as Entered<T>;
    } catch (error) {
      if (began || !hasCode(error, timeout.exceeded)) throw error;
      return (await busy(claim)) ?? { kind: 'in-progress', leaseLeft: 0, operationRef: claim.operationRef };
    }
  };

  return mode === 'tx' ? enterTx : enterSingleTx;
};
