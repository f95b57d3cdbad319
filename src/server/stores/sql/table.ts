import type { SqlExecutor, SqlResult } from '../../../sql/database.js';
import { identifier, join, raw, render, sql, type Statement } from '../../../sql/statement.js';
import { asNumber } from '../../../sql/values.js';
import { hasCode } from '../../contention.js';
import type { DedupRecord, Hold, RecordRef, Settlement } from '../../record.js';
import type { Assignments, Dialect } from './dialect.js';
import { explained } from './missing-table.js';
import { columnsOf, recordOf, settledColumns } from './row.js';

/** A row as it was read, and the time of the database then. */
export interface SeenRow {
  readonly row: DedupRecord;
  /** Grows with every write: an update that names it changes what was read, or nothing. */
  readonly revision: number;
  readonly now: number;
  /** In which it was locked, where the dialect can tell: an update of it in another one changes nothing. */
  readonly transaction?: string | undefined;
}

/** The revision of a row that was inserted and not touched since. */
export const FIRST_REVISION = 1;

/** As much of a row as tells whether it is as it was inserted. */
export interface Glance {
  readonly revision: number;
  /** A run that is not in the row has announced an effect elsewhere. */
  readonly announced: boolean;
  readonly now: number;
  readonly transaction: string | undefined;
}

/** The statements of the store, each on the executor it is given. */
export interface Table {
  run(on: SqlExecutor, statement: Statement): Promise<SqlResult>;
  now(on: SqlExecutor): Promise<number>;
  read(on: SqlExecutor, ref: RecordRef): Promise<SeenRow | undefined>;
  /** Reads a row and holds its lock until the transaction ends. Undefined where it does not exist, or is locked and `lock` skips it. */
  lock(on: SqlExecutor, ref: RecordRef, lock: Statement): Promise<SeenRow | undefined>;
  glance(on: SqlExecutor, ref: RecordRef, lock: Statement): Promise<Glance | undefined>;
  /** Rows that match, locked until the transaction ends where the database can; without their bodies. */
  select(on: SqlExecutor, condition: Statement, more: Statement): Promise<SeenRow[]>;
  /** Inserts what is given as times from now. False: the key exists. */
  insertFromNow(on: SqlExecutor, record: DedupRecord): Promise<boolean>;
  /** Inserts a row with the dialect's `noWait` before it, or with nothing. False: the key exists. */
  insert(on: SqlExecutor, columns: Assignments, noWait?: Statement): Promise<boolean>;
  /**
   * Writes over the row that was read. False: it is not as it was, or was locked in another transaction than this.
   *
   * @param silent - also false where a run that is not in the row has announced an effect elsewhere
   */
  replace(on: SqlExecutor, seen: SeenRow, columns: Assignments, silent?: boolean): Promise<boolean>;
  /** Changes the row in progress that is held. False: it is not held, or `on` is in another transaction than the one given. */
  change(on: SqlExecutor, hold: Hold, columns: Assignments, transaction?: string): Promise<boolean>;
  settle(on: SqlExecutor, hold: Hold, settlement: Settlement, transaction?: string): Promise<boolean>;
  /** The columns of a record, its times as moments. */
  columns(record: DedupRecord): Assignments;
  /** Notes that the run with this fence may have effects elsewhere. False: that has been noted already. */
  note(on: SqlExecutor, ref: RecordRef, fence: number): Promise<boolean>;
  readonly dialect: Dialect;
  readonly names: { readonly keys: Statement; readonly effects: Statement };
}

const TIMES = ['lease_until', 'created_at', 'settled_at', 'result_expires_at', 'expires_at'] as const;
const PLAIN = [
  'scope', 'id_key', 'request_hash', 'status', 'response_code', 'body_omitted', 'owner', 'fence', 'attempts', 'effect_started', 'operation_ref',
  'reason', 'revision',
] as const;
const ANSWER = ['response_headers', 'response_body'] as const;

const assignments = (columns: Assignments): Statement => join(Object.entries(columns).map(([name, value]) => sql`${raw(name)} = ${value}`));

/** Where the row of a reference is. */
const at = ({ scope, key }: RecordRef): Statement => sql`scope = ${scope} AND id_key = ${key}`;

type Cells = SqlResult['rows'][number];

/** The transaction that a statement ran in, where it was asked for. */
export const transactionOf = ({ transaction }: Cells): string | undefined => (typeof transaction === 'string' ? transaction : undefined);

const seen = (cells: Cells): SeenRow => ({ row: recordOf(cells), revision: asNumber(cells['revision']), now: asNumber(cells['now']), transaction: transactionOf(cells) });

/** The two tables of the store, by the name of the first. */
export const tableOf = (dialect: Dialect, name: string): Table => {
  const names = { keys: identifier(name, dialect.quote), effects: identifier(`${name}_effects`, dialect.quote) };
  const run: Table['run'] = async (on, statement) => {
    const { text, values } = render(statement, dialect.placeholders);
    try {
      return await on.query(text, values);
    } catch (error) {
      throw explained(error, name, dialect);
    }
  };
  const timed = TIMES.map(column => sql`${dialect.millis(raw(column))} AS ${raw(column)}`);
  const effectFence = sql`(SELECT e.fence FROM ${names.effects} e WHERE e.scope = k.scope AND e.id_key = k.id_key) AS effect_fence`;
  const list = (columns: readonly string[]): Statement => join([...columns.map(raw), ...timed, effectFence]);
  const [whole, withoutBody] = [list([...PLAIN, ...ANSWER]), list(PLAIN)];
  const select = (what: Statement, condition: Statement, more: Statement): Statement =>
    sql`SELECT ${what}, ${dialect.now} AS now FROM ${names.keys} k WHERE ${condition} ${more}`;

  const insert: Table['insert'] = async (on, columns, noWait = raw('')) => {
    try {
      return (await run(on, sql`${noWait}${dialect.insert(names.keys, { ...columns, revision: sql`${FIRST_REVISION}` })}`)).changed > 0;
    } catch (error) {
      if (hasCode(error, dialect.duplicate)) return false;
      throw error;
    }
  };
  const inTransaction = (id: string | undefined): Statement => (dialect.transaction && id !== undefined ? sql` AND ${dialect.transaction} = ${id}` : raw(''));
  const change: Table['change'] = async (on, { owner, fence, ...ref }, columns, transaction) => {
    const held = sql`${at(ref)} AND owner = ${owner} AND fence = ${fence} AND status = 'in_progress'${inTransaction(transaction)}`;
    return (await run(on, sql`UPDATE ${names.keys} SET ${assignments(columns)}, revision = revision + 1 WHERE ${held}`)).changed > 0;
  };
  const locking = dialect.transaction ? sql`, ${dialect.transaction} AS transaction` : raw('');
  const find = async (on: SqlExecutor, what: Statement, ref: RecordRef, clause: Statement): Promise<SeenRow | undefined> => {
    const { rows } = await run(on, select(what, at(ref), clause));
    return rows[0] && seen(rows[0]);
  };
  return {
    run, insert, change, dialect, names,
    lock: (on, ref, clause) => find(on, sql`${whole}${locking}`, ref, clause),
    now: async on => asNumber((await run(on, sql`SELECT ${dialect.now} AS now`)).rows[0]?.['now']),
    async glance(on, ref, clause) {
      const { rows } = await run(on, select(sql`revision, ${effectFence}${locking}`, at(ref), clause));
      const [cells] = rows;
      return cells && { revision: asNumber(cells['revision']), announced: cells['effect_fence'] !== null, now: asNumber(cells['now']), transaction: transactionOf(cells) };
    },
    read: (on, ref) => find(on, whole, ref, raw('')),
    async select(on, condition, more) {
      const { rows } = await run(on, select(withoutBody, condition, more));
      return rows.map(seen);
    },
    insertFromNow: (on, record) => insert(on, columnsOf(record, dialect.later)),
    async replace(on, { row, revision, transaction }, columns, silent = false) {
      // Only where it can be of use: elsewhere it would lock the gap in which other keys are announced.
      const quiet = silent && dialect.looksBack ? sql` AND NOT EXISTS (SELECT 1 FROM ${names.effects} e WHERE e.scope = ${row.scope} AND e.id_key = ${row.key} AND e.fence > ${row.fence})` : raw('');
      const same = sql`${at(row)} AND revision = ${revision}${inTransaction(transaction)}${quiet}`;
      return (await run(on, sql`UPDATE ${names.keys} SET ${assignments(columns)}, revision = revision + 1 WHERE ${same}`)).changed > 0;
    },
    settle: (on, hold, settlement, transaction) => change(on, hold, settledColumns(settlement, dialect.later), transaction),
    columns: record => columnsOf(record, dialect.time),
    async note(on, { scope, key }, fence) {
      const row = { scope: sql`${scope}`, id_key: sql`${key}`, fence: sql`${fence}`, started_at: dialect.later(0) };
      return (await run(on, dialect.note(names.effects, row))).changed > 0;
    },
  };
};
