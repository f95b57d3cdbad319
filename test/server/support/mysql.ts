import { createPool, type Pool, type PoolConnection, type PoolOptions } from 'mysql2/promise';
import { migrate } from '../../../src/server/migrate.js';
import type { SqlDatabase } from '../../../src/sql/database.js';
import { fromMysql2 } from '../../../src/sql/mysql2.js';
import { createMysqlDatabase, type Place } from '../../support/sql-servers.js';

export interface MysqlDatabase {
  readonly place: Place;
  readonly pool: Pool;
  readonly database: SqlDatabase<PoolConnection>;
  /** Moves all times of the dedup table into the past, which is what passing time does to them. */
  pass(ms: number): Promise<void>;
  drop(): Promise<void>;
}

const TIMES = ['created_at', 'settled_at', 'result_expires_at', 'expires_at'];

/** Ages the rows of a dedup table. */
export const ageMysql = async (pool: Pool, ms: number, table = 'idempotency_keys'): Promise<void> => {
  const back = (column: string): string => `${column} = ${column} - INTERVAL :us MICROSECOND`;
  // 1970 says that there is no lease; it is no moment.
  const lease = "lease_until = IF(lease_until > '1970-01-01', lease_until - INTERVAL :us MICROSECOND, lease_until)";
  await pool.query({ sql: `UPDATE ${table} SET ${[...TIMES.map(back), lease].join(', ')}`, namedPlaceholders: true, values: { us: ms * 1000 } });
};

/** A database of its own with the dedup table in it. */
export const freshMysql = async (options: PoolOptions = {}): Promise<MysqlDatabase> => {
  const { drop, ...place } = await createMysqlDatabase();
  const pool = createPool({ ...place, connectionLimit: 20, ...options });
  const database = fromMysql2(pool);
  await migrate(database, 'mysql');
  return {
    place, pool, database,
    pass: ms => ageMysql(pool, ms),
    async drop() {
      await pool.end();
      await drop();
    },
  };
};
