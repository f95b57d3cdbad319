import { oneOf, type Kinds } from '../../checks.js';
import type { Isolation, SqlDatabase } from '../../sql/database.js';
import { raw, sql, type Statement } from '../../sql/statement.js';
import type { RecordRef } from '../record.js';
import type { DedupStore } from '../store.js';
import type { Dialect } from './sql/dialect.js';
import { insertInto } from './sql/insert.js';
import type { SqlStoreOptions } from './sql/mode.js';
import { checkIngredients, SERVER_KINDS } from './sql/option-kinds.js';
import { sqlDedupStore } from './sql/store.js';
import { tableOf } from './sql/table.js';

export interface MysqlDedupStoreOptions extends Pick<SqlStoreOptions, 'control'> {
  /**
   * How runs hold their key: `tx` where the handler's effects are in this database, `lease` where they are elsewhere.
   * @default 'tx'
   */
  readonly mode?: 'tx' | 'lease' | undefined;
  /** Name of the table, `schema.table` too. `migrate` makes it. @default 'idempotency_keys' */
  readonly table?: string | undefined;
  /**
   * Of the transactions that handlers run in; the same for all stores on a table. In 'serializable' ones a handler cannot
   * announce effects elsewhere; name it here where it is the server's own level, so that the handler hears that at once.
   * @default the database's own
   */
  readonly isolation?: Isolation | undefined;
}

const hex = (text: string): string => Array.from(new TextEncoder().encode(text), byte => byte.toString(16).padStart(2, '0')).join('');

/** Refs as one value: a list of placeholders would be another prepared text for each length, of which servers keep a limited number. */
const due = (refs: readonly RecordRef[]): Statement => {
  const keys = JSON.stringify(refs.map(({ scope, key }) => [hex(scope), hex(key)]));
  return sql`JSON_TABLE(${keys}, '$[*]' COLUMNS (scope_hex VARCHAR(4096) PATH '$[0]', key_hex VARCHAR(2000) PATH '$[1]')) AS due`;
};

/** From the refs to the rows, whatever the optimizer thinks of it: it would read a small table whole, and wait for each row that a run has locked. */
const joinDue = (table: Statement, refs: readonly RecordRef[]): Statement => sql`${due(refs)} STRAIGHT_JOIN ${table} AS k FORCE INDEX (PRIMARY)`;

const IS_DUE = raw('k.scope = UNHEX(due.scope_hex) AND k.id_key = UNHEX(due.key_hex)');

const microseconds = (ms: number): number => Math.round(ms * 1000);

const dialect: Dialect = {
  name: 'mysql',
  placeholders: 'positional',
  quote: '`',
  // UTC throughout: what NOW() says is in the time zone of the session, and twice a year an hour of that is no single moment.
  now: raw("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"),
  time: ms => sql`'1970-01-01' + INTERVAL ${microseconds(ms)} MICROSECOND`,
  later: ms => sql`UTC_TIMESTAMP(3) + INTERVAL ${microseconds(ms)} MICROSECOND`,
  millis: column => sql`TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ${column}) DIV 1000`,
  past: column => raw(`${column} <= UTC_TIMESTAMP(3)`),
  // The number of changed rows depends on a flag of the connection, so an existing key has to be an error.
  insert: insertInto,
  duplicate: new Set(['ER_DUP_ENTRY', 'ER_LOCK_WAIT_TIMEOUT']),
  note: (table, row) => sql`${insertInto(table, row)} ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence)), started_at = VALUES(started_at)`,
  updateRows: (table, changes, refs) => sql`UPDATE ${joinDue(table, refs)} SET ${changes} WHERE ${IS_DUE}`,
  deleteRows: (table, refs) => sql`DELETE FROM k USING ${joinDue(table, refs)} WHERE ${IS_DUE}`,
  skipLocked: raw('FOR UPDATE SKIP LOCKED'),
  // MySQL reads this as a comment: it has no such thing, and waits.
  noWait: raw('/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ '),
  looksBack: false,
  readsLock: true,
  whole: { mark: raw('SAVEPOINT samekey_whole'), check: raw('RELEASE SAVEPOINT samekey_whole'), lost: new Set(['ER_SP_DOES_NOT_EXIST']) },
  transaction: undefined,
  patience: undefined,
};

const KINDS: Kinds<MysqlDedupStoreOptions> = { ...SERVER_KINDS, mode: oneOf('tx', 'lease') };

/**
 * A dedup table in MariaDB 10.6 or newer, or MySQL 8.0 or newer; only MariaDB has been tested. Its clock is the
 * database's, so that neither the clocks nor the time zones of the processes and sessions matter.
 *
 * In `tx` mode a duplicate is answered 409 at once. On MySQL there is one exception: of several that arrive at the very
 * moment of the first, some wait for its handler, `innodb_lock_wait_timeout` at most, and then get its answer.
 *
 * @throws TypeError for what is no database, and for options that do not exist or cannot work
 * @example const store = mysqlDedupStore(fromMysql2(pool));
 */
export const mysqlDedupStore = <Tx>(database: SqlDatabase<Tx>, options: MysqlDedupStoreOptions = {}): DedupStore<Tx> => {
  checkIngredients('mysqlDedupStore', { database, options, kinds: KINDS });
  const { mode = 'tx', table = 'idempotency_keys', isolation, control } = options;
  return sqlDedupStore(database, tableOf(dialect, table), { mode, isolation, control });
};
