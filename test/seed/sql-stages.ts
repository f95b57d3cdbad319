import { DatabaseSync } from 'node:sqlite';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { onTestFinished } from 'vitest';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { postgresDedupStore, type PostgresDedupStoreOptions } from '../../src/server/stores/postgres.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { fromMysql2, fromNodeSqlite, fromPg } from '../../src/sql/index.js';
import { freshMysql } from '../server/support/mysql.js';
import { freshPostgres } from '../server/support/postgres.js';
import { freshSqlite } from '../server/support/sqlite.js';
import type { Stage } from './engine-checks.js';

/** Two servers' stores, each with connections of its own, on one database; without a door. */
export type SqlStage = Omit<Stage, 'door'>;

/** More than a check takes on a busy machine: these databases have clocks of their own, which go on. */
const DRIFT_MS = 60_000;

const onPostgres = (options: PostgresDedupStoreOptions) => async (): Promise<SqlStage> => {
  const { database, pass, place, drop } = await freshPostgres();
  onTestFinished(drop);
  const pool = new Pool({ ...place, max: 20 });
  onTestFinished(() => pool.end());
  return { stores: [postgresDedupStore(database, options), postgresDedupStore(fromPg(pool), options)], pass, drift: DRIFT_MS };
};

const onMysql = async (): Promise<SqlStage> => {
  const { database, pass, place, drop } = await freshMysql();
  onTestFinished(drop);
  const pool = createPool({ ...place, connectionLimit: 20 });
  onTestFinished(() => pool.end());
  return { stores: [mysqlDedupStore(database), mysqlDedupStore(fromMysql2(pool))], pass, drift: DRIFT_MS };
};

const onSqlite = async (): Promise<SqlStage> => {
  const { database, path, pass, close } = await freshSqlite();
  onTestFinished(close);
  const another = new DatabaseSync(path);
  onTestFinished(() => another.close());
  return { stores: [sqliteDedupStore(database), sqliteDedupStore(fromNodeSqlite(another))], pass, drift: DRIFT_MS };
};

export const SQL_STAGES: readonly (readonly [name: string, open: () => Promise<SqlStage>])[] = [
  ['PostgreSQL, in the transaction of the handler', onPostgres({ mode: 'tx' })],
  ['PostgreSQL, by lease', onPostgres({ mode: 'lease' })],
  ['MariaDB, in the transaction of the handler', onMysql],
  ['one SQLite file, by lease', onSqlite],
];
