import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createPool, type PoolConnection } from 'mysql2/promise';
import { Pool, type PoolClient } from 'pg';
import type { HandlerContext } from '../../../src/server/index.js';
import { migrate } from '../../../src/server/migrate.js';
import type { DedupStore } from '../../../src/server/store.js';
import { mysqlDedupStore } from '../../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { sqliteDedupStore } from '../../../src/server/stores/sqlite.js';
import { versionedResource, type VersionedDialect, type VersionedResource, type VersionedResourceOptions } from '../../../src/server/conditional/index.js';
import { fromMysql2, fromNodeSqlite, fromPg, onNodeSqlite, type SqlDatabase, type SqlExecutor } from '../../../src/sql/index.js';
import { createMysqlDatabase, createPostgresDatabase } from '../../support/sql-servers.js';

/** A database with an empty table of orders. */
export interface OrdersDatabase {
  readonly dialect: VersionedDialect;
  readonly database: SqlDatabase;
  /** The same through another connection, where `database` has only one. */
  readonly another: SqlDatabase;
  /** Makes a dedup table in the same database. */
  openStore(): Promise<DedupStore>;
  /** What a handler's statements go through, in the transaction that records its answer. */
  transactionOf(context: HandlerContext): Promise<SqlExecutor>;
  close(): Promise<void>;
}

const COLUMNS: Readonly<Record<VersionedDialect, string>> = {
  postgres: 'id text PRIMARY KEY, status text, price numeric(10, 2), note text UNIQUE, proof bytea, details jsonb, version bigint NOT NULL',
  mysql: 'id varchar(64) PRIMARY KEY, status text, price decimal(10, 2), note varchar(64) UNIQUE, proof longblob, details json, version bigint NOT NULL',
  sqlite: 'id text PRIMARY KEY, status text, price real, note text UNIQUE, proof blob, details text, version integer NOT NULL',
};

/** Enough that writers really meet. */
const CONNECTIONS = 10;

const openPostgres = async (): Promise<OrdersDatabase> => {
  const { drop, ...place } = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: CONNECTIONS });
  const close = async (): Promise<void> => {
    await pool.end();
    await drop();
  };
  const database = fromPg(pool);
  return {
    dialect: 'postgres', database, another: database, close,
    openStore: async () => (await migrate(database, 'postgres'), postgresDedupStore(database) as DedupStore),
    transactionOf: async context => fromPg((await context.transaction()) as PoolClient),
  };
};

const openMysql = async (): Promise<OrdersDatabase> => {
  const { drop, ...place } = await createMysqlDatabase();
  const pool = createPool({ ...place, connectionLimit: CONNECTIONS });
  const close = async (): Promise<void> => {
    await pool.end();
    await drop();
  };
  const database = fromMysql2(pool);
  return {
    dialect: 'mysql', database, another: database, close,
    openStore: async () => (await migrate(database, 'mysql'), mysqlDedupStore(database) as DedupStore),
    transactionOf: async context => fromMysql2((await context.transaction()) as PoolConnection),
  };
};

const openSqlite = async (): Promise<OrdersDatabase> => {
  const directory = mkdtempSync(join(tmpdir(), 'samekey-test-'));
  const path = join(directory, 'orders.db');
  const [sqlite, another] = [new DatabaseSync(path), new DatabaseSync(path)];
  const close = async (): Promise<void> => {
    sqlite.close();
    another.close();
    rmSync(directory, { recursive: true, force: true });
  };
  const database = fromNodeSqlite(sqlite);
  return {
    dialect: 'sqlite', database, another: fromNodeSqlite(another), close,
    openStore: async () => (await migrate(database, 'sqlite'), sqliteDedupStore(database) as DedupStore),
    transactionOf: async context => onNodeSqlite((await context.transaction()) as DatabaseSync),
  };
};

const withTable = (open: () => Promise<OrdersDatabase>) => async (): Promise<OrdersDatabase> => {
  const opened = await open();
  await opened.database.query(`CREATE TABLE orders (${COLUMNS[opened.dialect]})`);
  return opened;
};

export const ORDERS_DATABASES: readonly (readonly [name: string, open: () => Promise<OrdersDatabase>])[] = [
  ['PostgreSQL', withTable(openPostgres)],
  ['MariaDB', withTable(openMysql)],
  ['SQLite', withTable(openSqlite)],
];

type Column = 'status' | 'price';

export type Orders = VersionedResource<Column>;

export const ordersOf = ({ database, dialect }: OrdersDatabase, options: Partial<VersionedResourceOptions<Column>> = {}): Orders =>
  versionedResource({ database, dialect, table: 'orders', columns: ['status', 'price'], ...options });

export const URL_OF_ORDERS = 'https://api.test/orders/';

/** The handler of the README: what it takes to serve a resource. */
export const serveOrders = (orders: Orders) => async (request: Request): Promise<Response> => {
  const id = new URL(request.url).pathname.slice('/orders/'.length);
  switch (request.method) {
    case 'GET': return orders.get(request, id);
    case 'PUT': return orders.put(request, id, (await request.json()) as Record<Column, string>);
    case 'PATCH': return orders.patch(request, id, (await request.json()) as Record<Column, string>);
    case 'DELETE': return orders.delete(request, id);
    default: return new Response(null, { status: 405 });
  }
};

export interface Said {
  readonly status: number;
  readonly etag: string | null;
  readonly body: unknown;
}

/** One request about order 1, served by a resource with these options. */
export interface Ask {
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly options?: Partial<VersionedResourceOptions<Column>> | undefined;
}

/** Says a request about order 1, and reads what it is answered with. */
export const say = async (opened: OrdersDatabase, method: string, { body, headers = {}, options = {} }: Ask = {}): Promise<Said> => {
  const request = new Request(`${URL_OF_ORDERS}1`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const response = await serveOrders(ordersOf(opened, options))(request);
  const text = await response.text();
  return { status: response.status, etag: response.headers.get('etag'), body: text === '' ? undefined : JSON.parse(text) };
};

export const rowsOf = async ({ database }: OrdersDatabase): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  (await database.query('SELECT id, status, price, version FROM orders')).rows.map(row => ({ ...row }));

/** The number in an ETag. */
export const versionIn = (etag: string | null | undefined): number => Number(etag?.slice(1, -1));
