import { Pool, type PoolClient, type PoolConfig } from 'pg';
import { migrate } from '../../../src/server/migrate.js';
import type { HandlerContext } from '../../../src/server/index.js';
import { postgresDedupStore, type PostgresDedupStoreOptions } from '../../../src/server/stores/postgres.js';
import type { SqlDatabase } from '../../../src/sql/database.js';
import { fromPg } from '../../../src/sql/pg.js';
import type { EffectLedger } from '../../../src/testing/conformance.js';
import { createPostgresDatabase, type Place } from '../../support/sql-servers.js';
import type { Worker } from './targets.js';

export interface PostgresDatabase {
  readonly place: Place;
  readonly pool: Pool;
  readonly database: SqlDatabase<PoolClient>;
  /** Moves all times of the dedup table into the past, which is what passing time does to them. */
  pass(ms: number): Promise<void>;
  /** Empties the dedup table, and the effects. */
  clear(): Promise<void>;
  drop(): Promise<void>;
}

const TIMES = ['created_at', 'settled_at', 'result_expires_at', 'expires_at'];

/** Ages the rows of a dedup table; those that a transaction holds have no time that counts. */
export const agePostgres = async (pool: Pool, ms: number, table = 'idempotency_keys'): Promise<void> => {
  const back = (column: string): string => `${column} = ${column} - $1::float8 * interval '1 millisecond'`;
  // The epoch says that there is no lease; it is no moment.
  const lease = "lease_until = CASE WHEN lease_until > to_timestamp(0) THEN lease_until - $1::float8 * interval '1 millisecond' ELSE lease_until END";
  await pool.query(`UPDATE ${table} SET ${[...TIMES.map(back), lease].join(', ')} WHERE ctid IN (SELECT ctid FROM ${table} FOR UPDATE SKIP LOCKED)`, [ms]);
};

/** A database of its own with the dedup table in it, and one for the effects of handlers. */
export const freshPostgres = async (config: PoolConfig = {}): Promise<PostgresDatabase> => {
  const { drop, ...place } = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: 20, ...config });
  pool.on('error', () => {});
  const database = fromPg(pool);
  await migrate(database, 'postgres');
  await pool.query('CREATE TABLE charges (id serial PRIMARY KEY, label text, attempt int)');
  return {
    place, pool, database,
    pass: ms => agePostgres(pool, ms),
    // Not TRUNCATE, which waits for whoever is still reading, and syncs files.
    clear: async () => void (await pool.query('DELETE FROM idempotency_keys; DELETE FROM idempotency_keys_effects; DELETE FROM charges')),
    async drop() {
      await pool.end();
      await drop();
    },
  };
};

/** A server process with connections of its own. */
export const postgresWorker = ({ place, pool: admin }: Pick<PostgresDatabase, 'place' | 'pool'>, options: PostgresDedupStoreOptions): Worker => {
  const application = `samekey-worker-${(workers += 1)}`;
  // Each run holds a connection, and a case has 50 at once.
  const pool = new Pool({ ...place, max: 60, application_name: application });
  pool.on('error', () => {});
  const die = async (): Promise<void> => {
    // A dead process opens no connections; a run that goes on would, to look at its record.
    void pool.end();
    const end = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1';
    // Until the server has let go of their locks.
    while ((await admin.query(end, [application])).rowCount !== 0);
  };
  let death: Promise<void> | undefined;
  return { store: postgresDedupStore(fromPg(pool), options), die: () => (death ??= die()) };
};

let workers = 0;

/** Effects as rows of the transaction that records the answer. */
export const postgresLedger = (pool: Pool): EffectLedger<HandlerContext> => ({
  async add(id, context) {
    const client = (await context?.transaction()) as PoolClient;
    await client.query('INSERT INTO charges (label) VALUES ($1)', [id]);
  },
  async count(id) {
    return Number((await pool.query('SELECT count(*) FROM charges WHERE label = $1', [id])).rows[0].count);
  },
});
