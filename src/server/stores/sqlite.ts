import { aName, withMethods, type Kinds } from '../../checks.js';
import type { Clock } from '../../clock.js';
import { StoreUnavailableError } from '../../errors.js';
import type { SqlDatabase } from '../../sql/database.js';
import { join, raw, sql, type Statement } from '../../sql/statement.js';
import type { RecordRef } from '../record.js';
import type { DedupStore } from '../store.js';
import type { Dialect } from './sql/dialect.js';
import { insertInto } from './sql/insert.js';
import { checkIngredients } from './sql/option-kinds.js';
import { sqlDedupStore } from './sql/store.js';
import { tableOf } from './sql/table.js';

export interface SqliteDedupStoreOptions {
  /** Name of the table. `migrate` makes it. @default 'idempotency_keys' */
  readonly table?: string | undefined;
  /** Whose time leases and expiry follow. @default the machine's, as SQLite reads it when a statement runs */
  readonly clock?: Pick<Clock, 'now'> | undefined;
}

/** SQLite keeps ms within; as a fraction of seconds they are not exact. */
const MACHINE_TIME = raw("CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)");

const among = (refs: readonly RecordRef[]): Statement => sql`(scope, id_key) IN (VALUES ${join(refs.map(({ scope, key }) => sql`(${scope}, ${key})`))})`;

const dialectOn = (now: () => Statement): Dialect => ({
  name: 'sqlite',
  placeholders: 'positional',
  quote: '"',
  get now() {
    return now();
  },
  time: ms => sql`${Math.round(ms)}`,
  later: ms => sql`${now()} + ${Math.round(ms)}`,
  millis: column => column,
  past: column => sql`${raw(column)} <= ${now()}`,
  insert: (table, row) => sql`${insertInto(table, row)} ON CONFLICT (scope, id_key) DO NOTHING`,
  duplicate: new Set(),
  note: (table, row) => sql`${insertInto(table, row)} ON CONFLICT (scope, id_key) DO UPDATE SET fence = max(fence, excluded.fence), started_at = excluded.started_at`,
  updateRows: (table, changes, refs) => sql`UPDATE ${table} SET ${changes} WHERE ${among(refs)}`,
  deleteRows: (table, refs) => sql`DELETE FROM ${table} WHERE ${among(refs)}`,
  skipLocked: raw(''),
  noWait: undefined,
  looksBack: false,
  readsLock: false,
  // A full disk, INSERT OR ROLLBACK or a handler's own COMMIT end it; any failure of the check means that.
  whole: { mark: raw('SAVEPOINT samekey_whole'), check: raw('RELEASE samekey_whole'), lost: new Set(['ERR_SQLITE_ERROR']) },
  transaction: undefined,
  patience: undefined,
});

/** The first SQLite in which several connections may share a write-ahead log: before it, a reset of the log could lose pages. */
const SHARED_WAL_SINCE = [3, 51, 3] as const;

const canShareWal = (version: string): boolean => {
  const parts = version.split('.').map(Number);
  const at = SHARED_WAL_SINCE.findIndex((wanted, index) => parts[index] !== wanted);
  return at === -1 || (parts[at] ?? 0) > (SHARED_WAL_SINCE[at] ?? 0);
};

const noJournal = (wanted: string, version: string, found: string, cause?: unknown): StoreUnavailableError => {
  const way = wanted === 'wal'
    ? 'Put the file on a local file system where SQLite can have shared memory.'
    : `A write-ahead log that several connections share can lose pages in SQLite ${version}. Update Node to 24.15 or later, or run PRAGMA journal_mode = DELETE while nobody else has the file open.`;
  return new StoreUnavailableError(`The SQLite database has journal_mode ${found} and cannot be given ${wanted}. ${way}`, { cause });
};

/** A journal in which nothing that was acknowledged gets lost, and many can read while one writes where that is safe. */
const setJournal = async (database: SqlDatabase): Promise<void> => {
  // It reads from the file, because a connection that has not does not know how the file is really kept.
  const { rows } = await database.query('SELECT sqlite_version() AS version, count(*) AS objects FROM sqlite_schema');
  const version = String(rows[0]?.['version']);
  const wanted = canShareWal(version) ? 'wal' : 'delete';
  const set = async (): Promise<string> => String((await database.query(`PRAGMA journal_mode = ${wanted}`)).rows[0]?.['journal_mode']);
  const found = await set().catch((error: unknown) => Promise.reject(noJournal(wanted, version, 'another one', error)));
  // Nobody shares a database that is in memory.
  if (found !== wanted && found !== 'memory') throw noJournal(wanted, version, found);
  await database.query('PRAGMA synchronous = FULL');
};

/** The database, set up before its first statement. */
const durable = <Tx>(database: SqlDatabase<Tx>): SqlDatabase<Tx> => {
  let setting: Promise<void> | undefined;
  const forget = (error: unknown): never => {
    setting = undefined;
    throw error;
  };
  const ready = (): Promise<void> => (setting ??= setJournal(database).catch(forget));
  return {
    query: async (text, values) => ready().then(() => database.query(text, values)),
    transaction: async (work, options) => ready().then(() => database.transaction(work, options)),
  };
};

const KINDS: Kinds<SqliteDedupStoreOptions> = { table: aName, clock: withMethods('a clock was expected, with now()', 'now') };

/**
 * A dedup table in SQLite, for the processes of one machine. Runs hold their key by a lease: one in a transaction would
 * keep all other keys waiting. For the same reason a handler that asks for its transaction does so last, when all that takes
 * time is done, and after `effectStarted()`, which has to be written outside of it. The store sets the file's
 * journal to WAL and the connection to `synchronous = FULL`.
 *
 * @throws TypeError for what is no database, and for options that do not exist: it has no `mode` either
 * @example const store = sqliteDedupStore(fromNodeSqlite(new DatabaseSync('shop.db')));
 */
export const sqliteDedupStore = <Tx>(database: SqlDatabase<Tx>, options: SqliteDedupStoreOptions = {}): DedupStore<Tx> => {
  checkIngredients('sqliteDedupStore', { database, options, kinds: KINDS });
  const { table = 'idempotency_keys', clock } = options;
  const dialect = dialectOn(clock ? () => sql`${clock.now()}` : () => MACHINE_TIME);
  return sqlDedupStore(durable(database), tableOf(dialect, table), { mode: 'lease', isolation: undefined });
};
