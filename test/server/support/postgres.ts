import pg from 'pg';
import { migrate } from '../../../src/server/migrate.js';
import type { SqlDatabase } from '../../../src/sql/database.js';
import { fromPg } from '../../../src/sql/pg.js';
import { createPostgresDatabase, type Place } from '../../support/sql-servers.js';

export interface PostgresDatabase {
  readonly place: Place;
  readonly pool: pg.Pool;
  readonly database: SqlDatabase<pg.PoolClient>;
  /** Moves all times of the dedup table into the past, which is what passing time does to them. */
  pass(ms: number): Promise<void>;
  drop(): Promise<void>;
}

const TIMES = ['created_at', 'settled_at', 'result_expires_at', 'expires_at'];

/** Ages the rows of a dedup table. */
export const agePostgres = async (pool: pg.Pool, ms: number, table = 'idempotency_keys'): Promise<void> => {
  const back = (column: string): string => `${column} = ${column} - $1::float8 * interval '1 millisecond'`;
  // The epoch says that there is no lease; it is no moment.
  const lease = "lease_until = CASE WHEN lease_until > to_timestamp(0) THEN lease_until - $1::float8 * interval '1 millisecond' ELSE lease_until END";
  await pool.query(`UPDATE ${table} SET ${[...TIMES.map(back), lease].join(', ')}`, [ms]);
};

/** A database of its own with the dedup table in it. */
export const freshPostgres = async (config: pg.PoolConfig = {}): Promise<PostgresDatabase> => {
  const { drop, ...place } = await createPostgresDatabase();
  const pool = new pg.Pool({ ...place, max: 20, ...config });
  pool.on('error', () => {});
  const database = fromPg(pool);
  await migrate(database, 'postgres');
  return {
    place, pool, database,
    pass: ms => agePostgres(pool, ms),
    async drop() {
      await pool.end();
      await drop();
    },
  };
};
