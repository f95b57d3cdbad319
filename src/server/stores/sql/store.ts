import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { sql } from '../../../sql/statement.js';
import { isContention } from '../../contention.js';
import { claimRecord, resolveRecord, settleRecord, type Change, type Claim, type ClaimResult, type DedupRecord, type Hold, type RecordRef, type Settlement } from '../../record.js';
import type { DedupStore } from '../../store.js';
import { enteringSingleTx } from './enter-single-tx.js';
import { enteringTx } from './enter-tx.js';
import { isPlain, type SqlStoreOptions } from './mode.js';
import { purgeTable } from './purge.js';
import type { Table } from './table.js';
import { ensureSameTransaction, transactionIn, watchWhole } from './whole.js';

/** Times that a decision is made anew because the row changed under it. Each loss is another request's progress. */
const MAX_DECISIONS = 20;

/** A row is read, a function of `record.ts` decides, and the outcome is written only over what was read. */
const decide = async <T>(on: SqlExecutor, table: Table, ref: RecordRef, change: (row: DedupRecord | undefined, now: number) => Change<T>): Promise<T> => {
  for (let decisions = 0; decisions < MAX_DECISIONS; decisions += 1) {
    const seen = await table.read(on, ref);
    const { next, result } = change(seen?.row, seen?.now ?? (await table.now(on)));
    if (!next) return result;
    const columns = table.columns(next);
    if (await (seen ? table.replace(on, seen, columns) : table.insert(on, columns))) return result;
  }
  throw new Error(`The row of key "${ref.key}" changed ${MAX_DECISIONS} times while it was decided on. Try again.`);
};

/** Most claims are the first of their key: those are one statement, and the row's times are from the database's clock. */
const claimFirst = async (database: SqlDatabase, table: Table, claim: Claim): Promise<ClaimResult | undefined> => {
  if (!isPlain(claim)) return undefined;
  const { next, result } = claimRecord(undefined, claim, 0);
  return next && (await table.insertFromNow(database, next)) ? result : undefined;
};

/** Times that a statement by itself is sent again because the database gave it up for another one. */
const MAX_REPEATS = 5;

/** Sends again what was given up: nothing was done. InnoDB does so to inserts of one key at once, where a row of that key was just deleted. */
const repeated = async <T>(call: () => Promise<T>): Promise<T> => {
  for (let repeats = 0; repeats < MAX_REPEATS; repeats += 1) {
    try {
      return await call();
    } catch (error) {
      if (!isContention(error)) throw error;
    }
  }
  return call();
};

/** A dedup store in a table of a SQL database. */
export const sqlDedupStore = <Tx>(database: SqlDatabase<Tx>, table: Table, options: SqlStoreOptions): DedupStore<Tx> => {
  const settle = async (on: SqlExecutor, hold: Hold, settlement: Settlement): Promise<boolean> =>
    (await table.settle(on, hold, settlement)) || decide(on, table, hold, (row, now) => settleRecord(row, hold, settlement, now));
  const store: DedupStore<Tx> = {
    claim: claim =>
      repeated(async () => (await claimFirst(database, table, claim)) ?? decide(database, table, claim, (row, now) => claimRecord(row, claim, now))),
    renew(hold, lease, effectStarted) {
      const columns = { lease_until: table.dialect.later(lease), ...(effectStarted && { effect_started: sql`${true}` }) };
      return repeated(() => table.change(options.control ?? database, hold, columns));
    },
    settle: (hold, settlement) => repeated(() => settle(database, hold, settlement)),
    resolve: (ref, resolution) => repeated(() => decide(database, table, ref, (row, now) => resolveRecord(row, resolution, now))),
    get: async ref => (await table.read(database, ref))?.row,
    purge: purgeOptions => purgeTable(database, table, purgeOptions),
    transact: work => database.transaction(async (on, tx) => {
      const began = await transactionIn(table, on);
      const ensureWhole = await watchWhole(table, on);
      try {
        return await work(tx, async (hold, settlement) => {
          await ensureWhole();
          if (await table.settle(on, hold, settlement, began)) return true;
          await ensureSameTransaction(table, on, began);
          return settle(on, hold, settlement);
        });
      } catch (error) {
        // What is lost cannot be rolled back any more, which counts more than why it should be.
        await ensureWhole();
        await ensureSameTransaction(table, on, began);
        throw error;
      }
    }, { isolation: options.isolation }),
  };
  if (options.mode === 'lease') return store;
  const entering = options.mode === 'tx' ? enteringTx : enteringSingleTx;
  return { ...store, enter: entering(database, table, options) };
};
