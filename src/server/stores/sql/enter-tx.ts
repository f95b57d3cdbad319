import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { sql } from '../../../sql/statement.js';
import type { Claim } from '../../record.js';
import type { DedupStore, Entered } from '../../store.js';
import { blankColumns, blankRow, busy, look, runLocked, undoable, type Refused, type Work } from './held-run.js';
import { isPlain, type SqlStoreOptions } from './mode.js';
import { FIRST_REVISION, type SeenRow, type Table } from './table.js';

/** Times that a row vanishes (a purge) between its insert and its lock before that is called a failure. */
const MAX_ENTRIES = 10;

/** Locks the row that this claim has just inserted: unless somebody was quicker, all of it is known. */
const lockInserted = async (on: SqlExecutor, table: Table, claim: Claim): Promise<SeenRow | undefined> => {
  const { skipLocked } = table.dialect;
  const glance = await table.glance(on, claim, skipLocked);
  if (!glance) return undefined;
  const untouched = glance.revision === FIRST_REVISION && !glance.announced;
  return untouched ? blankRow(claim, glance) : table.lock(on, claim, skipLocked);
};

// The run has read that there is no note, and in such a database holds a lock on that until it ends.
const BARRIER = "effectStarted() cannot be noted beside a serializable transaction of this database. Use mode: 'lease', or another isolation, for handlers with effects elsewhere.";

/** Sees to it that the key has a row. `gone`: it was purged at this moment, or is just being inserted. */
const arrive = async (database: SqlDatabase, table: Table, claim: Claim): Promise<Refused | 'inserted' | 'found' | 'gone'> => {
  const { noWait } = table.dialect;
  const looksFirst = noWait !== undefined || !isPlain(claim);
  const before = looksFirst ? await look(database, table, claim) : undefined;
  if (before) return before;
  return (await table.insert(database, blankColumns(table, claim), noWait)) ? 'inserted' : ((await look(database, table, claim)) ?? 'gone');
};

/**
 * The row is committed before the transaction of the handler, which locks it: duplicates see the one, and skip the other
 * instead of waiting for it.
 */
export const enteringTx = <Tx>(database: SqlDatabase<Tx>, table: Table, { isolation, control = database }: SqlStoreOptions): NonNullable<DedupStore<Tx>['enter']> => {
  const barrier = isolation === 'serializable' && table.dialect.readsLock ? BARRIER : undefined;

  const lockAndRun = <T>(claim: Claim, work: Work<Tx, T>, first: boolean): Promise<Entered<T> | undefined> => {
    const note = (fence: number): Promise<boolean> => table.note(control, claim, fence);
    const inTransaction = async (on: SqlExecutor, tx: Tx): Promise<Entered<T> | undefined> => {
      const seen = first ? await lockInserted(on, table, claim) : await table.lock(on, claim, table.dialect.skipLocked);
      return seen && runLocked({ table, on, tx, seen, note, barrier }, claim, work);
    };
    const relock = async (on: SqlExecutor, waits: boolean): Promise<SeenRow | undefined> => {
      const clause = waits ? sql`FOR UPDATE` : table.dialect.skipLocked;
      const seen = await table.lock(on, claim, clause);
      // Where it was purged meanwhile.
      return seen ?? ((await table.insert(on, blankColumns(table, claim), table.dialect.noWait)) ? table.lock(on, claim, clause) : undefined);
    };
    return undoable({ database, table, claim, relock }, database.transaction(inTransaction, { isolation }));
  };

  return async (claim, work) => {
    for (let entries = 0; entries < MAX_ENTRIES; entries += 1) {
      const arrived = await arrive(database, table, claim);
      if (typeof arrived === 'object') return arrived;
      const entered = arrived === 'gone' ? undefined : ((await lockAndRun(claim, work, arrived === 'inserted')) ?? (await busy(database, table, claim)));
      if (entered) return entered;
    }
    // An insert that does not wait cannot tell a row that is there from one that another insert is about to commit.
    if (table.dialect.noWait) return { kind: 'in-progress', leaseLeft: 0, operationRef: claim.operationRef };
    throw new Error(`The row of key "${claim.key}" vanished ${MAX_ENTRIES} times before it could be locked. Is something else deleting from the table?`);
  };
};
