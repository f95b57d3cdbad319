import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { sql } from '../../../sql/statement.js';
import { asNumber } from '../../../sql/values.js';
import { hasCode } from '../../contention.js';
import type { Claim } from '../../record.js';
import type { DedupStore, Entered } from '../../store.js';
import type { Patience } from './dialect.js';
import { blankColumns, blankRow, busy, look, runLocked, undoable } from './held-run.js';
import { isPlain, type SqlStoreOptions } from './mode.js';
import { FIRST_REVISION, transactionOf, type SeenRow, type Table } from './table.js';

/** ms that a duplicate waits where nothing else is said: a client's patience, and less than most handlers may take. */
const LOCK_TIMEOUT_MS = 2_000;

// The note would outlive a rollback that takes the record itself away, and nobody could resolve it.
const BARRIER = "effectStarted() needs a record that is committed before the effect, which 'single-tx' has not. Use mode: 'tx' for handlers with effects elsewhere.";

/** Inserts the row, or waits for whoever has it. */
const claimRow = async (on: SqlExecutor, table: Table, claim: Claim, patience: Patience, timeout: number): Promise<SeenRow> => {
  const { rows } = await table.run(on, patience.insert(table.names.keys, { ...blankColumns(table, claim), revision: sql`${FIRST_REVISION}` }, timeout));
  // In the transaction that inserted the row nothing but its own statements can have changed it.
  const [cells = {}] = rows;
  if (asNumber(cells['inserted']) === 1) return blankRow(claim, { now: asNumber(cells['now']), transaction: transactionOf(cells) });
  await table.run(on, patience.set(timeout));
  const seen = await table.lock(on, claim, sql`FOR UPDATE`);
  await table.run(on, patience.reset);
  if (!seen) throw new Error(`The row of key "${claim.key}" was purged while it was waited for. Try again.`);
  return seen;
};

/** Claim, effects and answer in one transaction: duplicates wait for it, because they cannot see what it does. */
export const enteringSingleTx = <Tx>(database: SqlDatabase<Tx>, table: Table, { lockTimeout = LOCK_TIMEOUT_MS, control = database }: SqlStoreOptions): NonNullable<DedupStore<Tx>['enter']> => {
  const { patience } = table.dialect;
  if (!patience) throw new TypeError("This database has no lock timeout for one transaction, so mode 'single-tx' is not possible. Use 'tx'.");
  return async <T>(claim: Claim, work: Parameters<NonNullable<DedupStore<Tx>['enter']>>[1]): Promise<Entered<T>> => {
    const early = isPlain(claim) ? undefined : await look(database, table, claim);
    if (typeof early === 'object') return early;
    let hasRow = false;
    const lockRow = async (on: SqlExecutor): Promise<SeenRow> => {
      hasRow = false;
      const seen = await claimRow(on, table, claim, patience, lockTimeout);
      hasRow = true;
      return seen;
    };
    // The record is gone if the transaction was rolled back under its handler, and nobody could resolve the note by itself.
    const note = async (fence: number): Promise<boolean> => {
      await table.insert(control, blankColumns(table, claim));
      return table.note(control, claim, fence);
    };
    const inTransaction = async (on: SqlExecutor, tx: Tx): Promise<Entered<T>> =>
      (await runLocked({ table, on, tx, seen: await lockRow(on), barrier: BARRIER, note }, claim, work)) as Entered<T>;
    try {
      return (await undoable({ database, table, claim, relock: lockRow }, database.transaction(inTransaction, { isolation: 'read committed' }))) as Entered<T>;
    } catch (error) {
      if (hasRow || !hasCode(error, patience.exceeded)) throw error;
      return (await busy(database, table, claim)) ?? { kind: 'in-progress', leaseLeft: 0, operationRef: claim.operationRef };
    }
  };
};
