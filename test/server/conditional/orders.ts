import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { versionedResource, type VersionedDialect, type VersionedResource, type VersionedResourceOptions } from '../../../src/server/conditional/index.js';
import { fromMysql2, fromNodeSqlite, fromPg, type SqlDatabase } from '../../../src/sql/index.js';
import { createMysqlDatabase, createPostgresDatabase } from '../../support/sql-servers.js';

/** A database with an empty table of orders. */
export interface OrdersDatabase {
  readonly dialect: VersionedDialect;
  readonly database: SqlDatabase;
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
  return { dialect: 'postgres', database: fromPg(pool), close };
};

const openMysql = async (): Promise<OrdersDatabase> => {
  const { drop, ...place } = await createMysqlDatabase();
  const pool = createPool({ ...place, connectionLimit: CONNECTIONS });
  const close = async (): Promise<void> => {
    await pool.end();
    await drop();
  };
  return { dialect: 'mysql', database: fromMysql2(pool), close };
};

const openSqlite = async (): Promise<OrdersDatabase> => {
  const directory = mkdtempSync(join(tmpdir(), 'samekey-test-'));
  const sqlite = new DatabaseSync(join(directory, 'orders.db'));
  const close = async (): Promise<void> => {
    sqlite.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { dialect: 'sqlite', database: fromNodeSqlite(sqlite), close };
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
  const id = request.url.slice(URL_OF_ORDERS.length);
  switch (request.method) {
    case 'GET': return orders.get(request, id);
    case 'PUT': return orders.put(request, id, (await request.json()) as Record<Column, string>);
    case 'PATCH': return orders.patch(request, id, (await request.json()) as Record<Column, string>);
    case 'DELETE': return orders.delete(request, id);
    default: return new Response(null, { status: 405 });
  }
};
