import { atLeast, oneOf, type Kinds } from '../../checks.js';
import type { Isolation, SqlDatabase } from '../../sql/database.js';
import { join, raw, sql, type Statement } from '../../sql/statement.js';
import type { RecordRef } from '../record.js';
import type { DedupStore } from '../store.js';
import type { Dialect } from './sql/dialect.js';
import type { SqlMode, SqlStoreOptions } from './sql/mode.js';
import { columnList, insertInto } from './sql/insert.js';
import { checkIngredients, SERVER_KINDS } from './sql/option-kinds.js';
import { sqlDedupStore } from './sql/store.js';
import { tableOf } from './sql/table.js';

export interface PostgresDedupStoreOptions extends Pick<SqlStoreOptions, 'control'> {
  /**
   * How runs hold their key: `tx` where the handler's effects are in this database, `lease` where they are elsewhere,
   * `single-tx` where duplicates shall wait for the first run instead of hearing 409. @default 'tx'
   */
  readonly mode?: SqlMode | undefined;
  /** Name of the table, `schema.table` too. `migrate` makes it. @default 'idempotency_keys' */
  readonly table?: string | undefined;
  /** Of the transactions that handlers run in. @default the database's own. `single-tx` is always 'read committed' */
  readonly isolation?: Isolation | undefined;
  /** `single-tx` only: ms that a duplicate waits for the first run before it gets 409. @default 2_000 */
  readonly lockTimeout?: number | undefined;
}

const now = raw('floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint');

// A list of values is joined by the primary key; a list of pairs would be compared with every row of a scope.
const among = (refs: readonly RecordRef[]): Statement => sql`(scope, id_key) IN (VALUES ${join(refs.map(({ scope, key }) => sql`(${scope}, ${key})`))})`;

/** Locking a row gives the transaction one in any case. */
const transaction = raw('txid_current()::text');

const dialect: Dialect = {
  name: 'postgres',
  placeholders: 'numbered',
  quote: '"',
  now,
  time: ms => sql`to_timestamp(${ms}::float8 / 1000)`,
  later: ms => sql`clock_timestamp() + ${ms}::float8 * interval '1 millisecond'`,
  millis: column => sql`floor(extract(epoch FROM ${column}) * 1000)::bigint`,
  // clock_timestamp() changes within a statement, so that no index can serve it.
  past: column => raw(`${column} <= now()`),
  insert: (table, row) => sql`${insertInto(table, row)} ON CONFLICT (scope, id_key) DO NOTHING`,
  duplicate: new Set(),
  note: (table, row) =>
    sql`${insertInto(sql`${table} AS noted`, row)} ON CONFLICT (scope, id_key) DO UPDATE SET fence = excluded.fence, started_at = excluded.started_at WHERE noted.fence < excluded.fence`,
  updateRows: (table, changes, refs) => sql`UPDATE ${table} SET ${changes} WHERE ${among(refs)}`,
  deleteRows: (table, refs) => sql`DELETE FROM ${table} WHERE ${among(refs)}`,
  skipLocked: raw('FOR UPDATE OF k SKIP LOCKED'),
  noWait: undefined,
  looksBack: true,
  readsLock: false,
  // Nothing but ROLLBACK works in a transaction with a failed statement.
  whole: undefined,
  transaction,
  patience: {
    set: ms => raw(`SET LOCAL lock_timeout = ${Math.trunc(ms)}`),
    reset: raw('SET LOCAL lock_timeout TO DEFAULT'),
    // One statement instead of four. The parts run in this order, because each reads from the one before.
    insert: (table, row, ms) => sql`WITH bound AS (SELECT current_setting('lock_timeout') AS was, set_config('lock_timeout', ${String(Math.trunc(ms))}, true)),
      inserted AS (INSERT INTO ${table} (${columnList(row)}) SELECT ${join(Object.values(row))} FROM bound ON CONFLICT (scope, id_key) DO NOTHING RETURNING 1)
      SELECT (SELECT count(*) FROM inserted) AS inserted, set_config('lock_timeout', (SELECT was FROM bound), true), ${now} AS now, ${transaction} AS transaction`,
    exceeded: new Set(['55P03']),
  },
};

const KINDS: Kinds<PostgresDedupStoreOptions> = { ...SERVER_KINDS, mode: oneOf('tx', 'single-tx', 'lease'), lockTimeout: atLeast(0, 'ms') };

/**
 * A dedup table in PostgreSQL 12 or newer. Its clock is the database's, so that neither the clocks nor the time zones of
 * the processes matter.
 *
 * @throws TypeError for what is no database, and for options that do not exist or cannot work
 * @example const store = postgresDedupStore(fromPg(pool));
 */
export const postgresDedupStore = <Tx>(database: SqlDatabase<Tx>, options: PostgresDedupStoreOptions = {}): DedupStore<Tx> => {
  checkIngredients('postgresDedupStore', { database, options, kinds: KINDS });
  const { mode = 'tx', table = 'idempotency_keys', isolation, lockTimeout, control } = options;
  return sqlDedupStore(database, tableOf(dialect, table), { mode, isolation, lockTimeout, control });
};
