import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { temporaryDirectory, type AtEnd } from '../../keystore/support/processes.js';
import { migrate } from '../../../src/server/migrate.js';
import type { SqlDatabase } from '../../../src/sql/database.js';
import { fromNodeSqlite } from '../../../src/sql/node-sqlite.js';

export interface SqliteFile {
  readonly path: string;
  readonly sqlite: DatabaseSync;
  readonly database: SqlDatabase<DatabaseSync>;
  /** Moves all times of the dedup table into the past, which is what passing time does to them. */
  pass(ms: number): Promise<void>;
  close(): void;
}

const TIMES = ['created_at', 'settled_at', 'result_expires_at', 'expires_at', 'lease_until'];

/** A file of its own, that goes away with the test, with the dedup table in it, and one for the effects of handlers. */
export const freshSqlite = async (table = 'idempotency_keys', atEnd?: AtEnd): Promise<SqliteFile> => {
  const path = join(temporaryDirectory(atEnd), 'shop.db');
  const sqlite = new DatabaseSync(path);
  const database = fromNodeSqlite(sqlite);
  await migrate(database, 'sqlite', { table });
  sqlite.exec('CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, label TEXT, attempt INTEGER)');
  return {
    path, sqlite, database,
    pass: async ms => void (await database.query(`UPDATE ${table} SET ${TIMES.map(column => `${column} = ${column} - ?1`).join(', ')}`, [ms])),
    close: () => sqlite.close(),
  };
};
