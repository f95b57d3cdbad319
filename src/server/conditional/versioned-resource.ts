import { systemClock } from '../../clock.js';
import { random } from '../../key.js';
import type { SqlDatabase, SqlExecutor, SqlValue } from '../../sql/database.js';
import { conditional } from './conditional.js';
import { etagOf } from './etag.js';
import { problemOf } from './problems.js';
import { versionedRows, type RowId, type RowValues, type VersionedDialect, type VersionedRow, type VersionedRows } from './rows.js';
import { insertOrLock, removeRow, setValues, type Target } from './writes.js';

export interface VersionedResourceOptions<Column extends string> {
  readonly database: SqlDatabase;
  readonly dialect: VersionedDialect;
  /** `schema.table` too. */
  readonly table: string;
  /** The columns that make the resource; no others are read or written. */
  readonly columns: readonly Column[];
  /** The column of the id, which has to be the primary key. @default 'id' */
  readonly id?: string | undefined;
  /** The column of the version: `bigint`, or SQLite's `integer`. @default 'version' */
  readonly version?: string | undefined;
  /** Refuses writes without a precondition with 428. @default false */
  readonly required?: boolean | undefined;
  /** What `get` answers with, as JSON. @default id and columns, as the driver gives them */
  readonly represent?: ((row: Readonly<Record<string, unknown>>) => unknown) | undefined;
  /**
   * The version of a row that is new. It has to be unlike all that a row of the same id had, for an ETag must not match what was
   * deleted and made anew. @default ms since 1970, times 1000, plus chance
   */
  readonly newVersion?: (() => number) | undefined;
}

/**
 * A row as a resource whose methods are idempotent by design: repeated, each leaves what it left the first time, and a
 * repeat that came too late is refused. Values are set, never added to what is there.
 */
export interface VersionedResource<Column extends string> {
  /** 200 with the `ETag`, 304 or 404. */
  get(request: Request, id: RowId): Promise<Response>;
  /** Makes the row or gives it these values: 201, or 204; the same again leaves row and version as they are. */
  put(request: Request, id: RowId, values: Readonly<Record<Column, SqlValue>>): Promise<Response>;
  /** Gives these columns these values: 204, or 404. */
  patch(request: Request, id: RowId, values: { readonly [Name in Column]?: SqlValue | undefined }): Promise<Response>;
  /** Makes sure that there is no such row: 204, also when there was none. */
  delete(request: Request, id: RowId): Promise<Response>;
  /** The same in a transaction of yours: the one that records the answer under an idempotency key, say. */
  within(sql: SqlExecutor): VersionedResource<Column>;
}

/** Below 2^53 until the year 2255. */
const newVersionNow = (): number => systemClock.now() * 1000 + Math.floor(random() * 1000);

/** JSON has no integers beyond 2^53 that everybody reads alike. */
const withoutBigints = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

const done = (status: 201 | 204, version: number): Response => new Response(null, { status, headers: { ETag: etagOf(version) } });

type Settings = Pick<VersionedResourceOptions<string>, 'required' | 'represent'> & { readonly newVersion: () => number; readonly columns: readonly string[] };

const representation = (request: Request, { version, values }: VersionedRow, represent: (row: VersionedRow['values']) => unknown): Response => {
  const body = request.method === 'HEAD' ? null : JSON.stringify(represent(values), withoutBigints);
  return new Response(body, { headers: { 'Content-Type': 'application/json', ETag: etagOf(version) } });
};

const change = async (request: Request, target: Target, row: VersionedRow, { values, required }: { values: RowValues; required: boolean | undefined }): Promise<Response> =>
  conditional(request, { current: row.version, required }) ?? done(204, await setValues(target, row, values));

const put = async (request: Request, target: Target, values: RowValues, { required, newVersion, columns }: Settings): Promise<Response> => {
  const missing = columns.filter(column => values[column] === undefined);
  if (missing.length > 0) throw new TypeError(`PUT replaces the whole resource, but no value came for ${missing.join(', ')}. Give null for nothing, or use patch.`);
  const version = newVersion();
  const found = await insertOrLock(target, { values, version }, () => conditional(request, { current: undefined, required }));
  if (found instanceof Response) return found;
  return found.version === version ? done(201, version) : change(request, target, found, { values, required });
};

const patch = async (request: Request, target: Target, given: Readonly<Record<string, SqlValue | undefined>>, { required }: Settings): Promise<Response> => {
  const row = await target.rows.lock(target.on, target.id);
  // Null is a value, undefined is none.
  const values = Object.fromEntries(Object.entries(given).filter((entry): entry is [string, SqlValue] => entry[1] !== undefined));
  if (row) return change(request, target, row, { values, required });
  return conditional(request, { current: undefined, required }) ?? problemOf('resource_missing');
};

const PRECONDITION_FAILED = 412;

const remove = async (request: Request, target: Target, { required }: Settings): Promise<Response> => {
  const row = await target.rows.lock(target.on, target.id);
  const refusal = conditional(request, { current: row?.version, required });
  // What is gone already was what was asked for, whichever version it had (RFC 9110, 13.1.1).
  if (refusal && (row || refusal.status !== PRECONDITION_FAILED)) return refusal;
  if (row) await removeRow(target, row);
  return new Response(null, { status: 204 });
};

type Transact = <T>(work: (on: SqlExecutor) => Promise<T>) => Promise<T>;

const resourceOn = (rows: VersionedRows, reader: SqlExecutor, transact: Transact, settings: Settings): VersionedResource<string> => {
  const { required, represent = row => row } = settings;
  return {
    async get(request, id) {
      const row = await rows.read(reader, id);
      return conditional(request, { current: row?.version, required }) ?? (row ? representation(request, row, represent) : problemOf('resource_missing'));
    },
    put: (request, id, values) => transact(on => put(request, { on, rows, id }, values, settings)),
    patch: (request, id, values) => transact(on => patch(request, { on, rows, id }, values, settings)),
    delete: (request, id) => transact(on => remove(request, { on, rows, id }, settings)),
    within: sql => resourceOn(rows, sql, work => work(sql), settings),
  };
};

/**
 * Rows of a table as resources with versions, which ETags show and preconditions name. Every write is one short
 * transaction that holds the row. The table is yours; it needs a primary key on the id and the column of the version.
 *
 * @throws TypeError when a name is not one for SQL
 * @example
 * const orders = versionedResource({ database: fromPg(pool), dialect: 'postgres', table: 'orders', columns: ['status', 'note'] });
 * return orders.put(request, id, { status: 'paid', note: null });
 */
export const versionedResource = <Column extends string>(options: VersionedResourceOptions<Column>): VersionedResource<Column> => {
  const { database, dialect, table, columns, id = 'id', version = 'version', newVersion = newVersionNow } = options;
  const rows = versionedRows({ dialect, table, id, version, columns });
  // Of gaps between rows that a stricter level locks, MySQL makes deadlocks between those who create the same row.
  const transact: Transact = work => database.transaction(on => work(on), { isolation: 'read committed' });
  return resourceOn(rows, database, transact, { ...options, newVersion });
};
