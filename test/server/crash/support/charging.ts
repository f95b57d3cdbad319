import { DatabaseSync } from 'node:sqlite';
import { createPool, type PoolConnection } from 'mysql2/promise';
import { Pool, type PoolClient } from 'pg';
import type { DedupStore, HandlerContext } from '../../../../src/server/index.js';
import { mysqlDedupStore } from '../../../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../../../src/server/stores/postgres.js';
import { sqliteDedupStore } from '../../../../src/server/stores/sqlite.js';
import { asNumber, fromMysql2, fromNodeSqlite, fromPg, onNodeSqlite, type SqlDatabase, type SqlExecutor } from '../../../../src/sql/index.js';
import type { Job } from './job.js';

/** A database with charges in it, as a worker uses it. */
export interface Charging<Tx> {
  /** One store of each mode that the database can do. */
  readonly stores: { readonly tx?: DedupStore<Tx>; readonly lease: DedupStore<Tx> };
  /** Charges in the transaction that records the answer. */
  within(context: HandlerContext<Tx>): Promise<number>;
  /** Charges at once, and for good. */
  elsewhere(context: HandlerContext<Tx>): Promise<number>;
}

type Watch = <Tx>(database: SqlDatabase<Tx>) => SqlDatabase<Tx>;

const inserting = async (on: SqlExecutor, marks: string, { key, attempt }: HandlerContext): Promise<number> => {
  const { rows } = await on.query(`INSERT INTO charges (label, attempt) VALUES (${marks}) RETURNING id`, [key ?? '', attempt]);
  return asNumber(rows[0]?.['id']);
};

const postgres = (pool: Pool, watch: Watch): Charging<PoolClient> => {
  const database = watch(fromPg(pool));
  return {
    stores: { tx: postgresDedupStore(database), lease: postgresDedupStore(database, { mode: 'lease' }) },
    within: async context => inserting(fromPg(await context.transaction()), '$1, $2', context as HandlerContext),
    elsewhere: context => inserting(database, '$1, $2', context as HandlerContext),
  };
};

const mysql = (database: SqlDatabase<PoolConnection>): Charging<PoolConnection> => ({
  stores: { tx: mysqlDedupStore(database), lease: mysqlDedupStore(database, { mode: 'lease' }) },
  within: async context => inserting(fromMysql2(await context.transaction()), '?, ?', context as HandlerContext),
  elsewhere: context => inserting(database, '?, ?', context as HandlerContext),
});

const sqlite = (database: SqlDatabase<DatabaseSync>): Charging<DatabaseSync> => ({
  stores: { lease: sqliteDedupStore(database) },
  within: async context => inserting(onNodeSqlite(await context.transaction()), '?, ?', context as HandlerContext),
  elsewhere: context => inserting(database, '?, ?', context as HandlerContext),
});

/** @param watch - puts itself between the stores and the database */
export const openCharging = ({ database, connections }: Job, watch: Watch): Charging<unknown> => {
  if (database.kind === 'sqlite') return sqlite(watch(fromNodeSqlite(new DatabaseSync(database.path)))) as Charging<unknown>;
  if (database.kind === 'mysql') return mysql(watch(fromMysql2(createPool({ ...database.place, connectionLimit: connections })))) as Charging<unknown>;
  const pool = new Pool({ ...database.place, max: connections });
  pool.on('error', () => {});
  return postgres(pool, watch) as Charging<unknown>;
};
