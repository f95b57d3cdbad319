import pg from 'pg';
import { migrate } from '../../../src/server/migrate.js';
import { newKey } from '../../../src/key.js';
import { fromPg } from '../../../src/sql/pg.js';
import type { SqlDatabase } from '../../../src/sql/database.js';

/** The server that these tests use; each makes a database of its own there. */
const ADMIN = process.env['SAMEKEY_POSTGRES'] ?? 'postgres://postgres@127.0.0.1:5432/postgres';

export interface PostgresDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly database: SqlDatabase<pg.PoolClient>;
  /** Moves all times of the dedup table into the past, which is what passing time does to them. */
  pass(ms: number): Promise<void>;
  drop(): Promise<void>;
}

const admin = async (statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: ADMIN });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
};

const TIMES = ['created_at', 'settled_at', 'result_expires_at', 'expires_at'];

/** A database of its own with the dedup table in it. */
export const freshPostgres = async (config: pg.PoolConfig = {}, table = 'idempotency_keys'): Promise<PostgresDatabase> => {
  const name = `samekey_test_${newKey().replaceAll('-', '')}`;
  await admin(`CREATE DATABASE ${name}`);
  const url = new URL(ADMIN);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 20, ...config });
  pool.on('error', () => {});
  const database = fromPg(pool);
  await migrate(database, 'postgres', { table });
  return {
    url: url.href, pool, database,
    async pass(ms) {
      const back = (column: string): string => `${column} = ${column} - $1::float8 * interval '1 millisecond'`;
      // The epoch says that there is no lease; it is no moment.
      const lease = `lease_until = CASE WHEN lease_until > to_timestamp(0) THEN lease_until - $1::float8 * interval '1 millisecond' ELSE lease_until END`;
      await pool.query(`UPDATE ${table} SET ${[...TIMES.map(back), lease].join(', ')}`, [ms]);
    },
    async drop() {
      await pool.end();
      await admin(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
};
