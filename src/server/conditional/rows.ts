import type { SqlExecutor, SqlResult, SqlValue } from '../../sql/database.js';
import { identifier, join, raw, render, sql, type Placeholders, type Statement } from '../../sql/statement.js';
import { asNumber } from '../../sql/values.js';

/** A database that versioned rows can be kept in. */
export type VersionedDialect = 'postgres' | 'mysql' | 'sqlite';

/** Where the databases differ. */
interface Differences {
  readonly placeholders: Placeholders;
  readonly quote: '"' | '`';
  /** After a SELECT: locks the row, and reads it as it is now whatever the transaction saw before. */
  readonly lock: string;
  /** After an INSERT: leaves a row alone that has the id already. */
  onDuplicate(id: Statement): Statement;
}

const DIFFERENCES: Readonly<Record<VersionedDialect, Differences>> = {
  postgres: { placeholders: 'numbered', quote: '"', lock: 'FOR UPDATE', onDuplicate: id => sql`ON CONFLICT (${id}) DO NOTHING` },
  // Not IGNORE, which would also ignore values that do not fit.
  mysql: { placeholders: 'positional', quote: '`', lock: 'FOR UPDATE', onDuplicate: id => sql`ON DUPLICATE KEY UPDATE ${id} = ${id}` },
  // There one transaction writes at a time.
  sqlite: { placeholders: 'positional', quote: '"', lock: '', onDuplicate: id => sql`ON CONFLICT (${id}) DO NOTHING` },
};

export interface VersionedTable {
  readonly dialect: VersionedDialect;
  /** `schema.table` too. */
  readonly table: string;
  /** Its primary key. */
  readonly id: string;
  /** A 64-bit integer. */
  readonly version: string;
  readonly columns: readonly string[];
}

export interface VersionedRow {
  readonly version: number;
  readonly values: Readonly<Record<string, unknown>>;
}

export type RowId = string | number | bigint;

export type RowValues = Readonly<Record<string, SqlValue>>;

/** The statements about one row, each on the executor it is given. */
export interface VersionedRows {
  read(on: SqlExecutor, id: RowId): Promise<VersionedRow | undefined>;
  /** Reads it, and holds it until the transaction ends. */
  lock(on: SqlExecutor, id: RowId): Promise<VersionedRow | undefined>;
  /** Inserts a row with this version, unless its id is taken. */
  insert(on: SqlExecutor, id: RowId, row: { readonly values: RowValues; readonly version: number }): Promise<void>;
  /** Sets values and version of a row that has the version `from`. False: it has not. */
  update(on: SqlExecutor, id: RowId, change: { readonly values: RowValues; readonly from: number; readonly to: number }): Promise<boolean>;
  /** Removes it if it has this version. False: it has not. */
  remove(on: SqlExecutor, id: RowId, version: number): Promise<boolean>;
}

/** @throws TypeError when a name is not one, or a value is for no column of the table */
export const versionedRows = ({ dialect, table, id, version, columns }: VersionedTable): VersionedRows => {
  const { placeholders, quote, lock: locking, onDuplicate } = DIFFERENCES[dialect];
  const name = (text: string): Statement => identifier(text, quote);
  const [of, idName, versionName] = [name(table), name(id), name(version)];
  const known = new Map(columns.map(column => [column, name(column)]));
  const all = join([idName, versionName, ...known.values()]);
  const nameOf = (column: string): Statement => {
    const found = known.get(column);
    if (found) return found;
    throw new TypeError(`A value came for "${column}", which is none of the columns of ${table} that may be written: ${columns.join(', ')}.`);
  };
  const run = (on: SqlExecutor, statement: Statement): Promise<SqlResult> => {
    const { text, values } = render(statement, placeholders);
    return on.query(text, values);
  };
  const select = async (on: SqlExecutor, rowId: RowId, suffix: string): Promise<VersionedRow | undefined> => {
    const { rows } = await run(on, sql`SELECT ${all} FROM ${of} WHERE ${idName} = ${rowId} ${raw(suffix)}`);
    if (rows.length > 1) throw new Error(`${table} has ${rows.length} rows with one ${id}. Make ${id} its primary key: without it nothing keeps two requests from making two rows.`);
    if (!rows[0]) return undefined;
    const { [version]: current, ...values } = rows[0];
    return { version: asNumber(current), values };
  };
  return {
    read: (on, rowId) => select(on, rowId, ''),
    lock: (on, rowId) => select(on, rowId, locking),
    async insert(on, rowId, { values, version: first }) {
      const names = join([idName, versionName, ...Object.keys(values).map(nameOf)]);
      const given = join([rowId, first, ...Object.values(values)].map(value => sql`${value}`));
      await run(on, sql`INSERT INTO ${of} (${names}) VALUES (${given}) ${onDuplicate(idName)}`);
    },
    async update(on, rowId, { values, from, to }) {
      const set = join([sql`${versionName} = ${to}`, ...Object.entries(values).map(([column, value]) => sql`${nameOf(column)} = ${value}`)]);
      return (await run(on, sql`UPDATE ${of} SET ${set} WHERE ${idName} = ${rowId} AND ${versionName} = ${from}`)).changed > 0;
    },
    async remove(on, rowId, from) {
      return (await run(on, sql`DELETE FROM ${of} WHERE ${idName} = ${rowId} AND ${versionName} = ${from}`)).changed > 0;
    },
  };
};
