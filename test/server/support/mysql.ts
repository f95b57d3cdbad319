import { createPool, type Pool, type PoolConnection, type PoolOptions } from 'mysql2/promise';
import { migrate } from '../../../src/server/migrate.js';
import type { HandlerContext } from '../../../src/server/index.js';
import { mysqlDedupStore, type MysqlDedupStoreOptions } from '../../../src/server/stores/mysql.js';
import type { SqlDatabase } from '../../../src/sql/database.js';
import { fromMysql2 } from '../../../src/sql/mysql2.js';
import type { EffectLedger } from '../../../src/testing/conformance.js';
import { createMysqlDatabase, type Place } from '../../support/sql-servers.js';
import type { Worker } from './targets.js';

export interface MysqlDatabase {
  readonly place: Place;
  readonly pool: Pool;
  readonly database: SqlDatabase<PoolConnection>;
  /** Moves all times of the dedup table into the past, which is what passing time does to them. */
  pass(ms: number): Promise<void>;
  /** Rows of a table. */
  count(table: string): Promise<number>;
  /** Empties the dedup table, and the effects. */
  clear(): Promise<void>;
  drop(): Promise<void>;
}

const TIMES = ['created_at', 'settled_at', 'result_expires_at', 'expires_at'];

/** Ages the rows of a dedup table, but for those that a run has locked: when that ends it writes them anew. */
export const ageMysql = async (pool: Pool, ms: number, table = 'idempotency_keys'): Promise<void> => {
  const microseconds = ms * 1000;
  const back = (column: string): string => `${column} = ${column} - INTERVAL ${microseconds} MICROSECOND`;
  // 1970 says that there is no lease; it is no moment.
  const lease = `lease_until = IF(lease_until > '1970-01-01', lease_until - INTERVAL ${microseconds} MICROSECOND, lease_until)`;
  await fromMysql2(pool).transaction(async (_sql, connection) => {
    const [rows] = await connection.query<never[]>(`SELECT scope, id_key FROM ${table} FOR UPDATE SKIP LOCKED`);
    // A small table would be read whole, and the locked rows with it.
    const free = rows.map(({ scope, id_key }) => [scope, id_key]);
    if (free.length > 0) await connection.query(`UPDATE ${table} FORCE INDEX (PRIMARY) SET ${[...TIMES.map(back), lease].join(', ')} WHERE (scope, id_key) IN (?)`, [[...free, ...free]]);
  });
};

const TABLES = ['idempotency_keys', 'idempotency_keys_effects', 'charges'];

/** A database of its own with the dedup table in it, and one for the effects of handlers. */
export const freshMysql = async (options: PoolOptions = {}): Promise<MysqlDatabase> => {
  const { drop, ...place } = await createMysqlDatabase();
  const pool = createPool({ ...place, connectionLimit: 20, ...options });
  const database = fromMysql2(pool);
  await migrate(database, 'mysql');
  await pool.query('CREATE TABLE charges (id int AUTO_INCREMENT PRIMARY KEY, label varchar(255), attempt int) ENGINE = InnoDB');
  return {
    place, pool, database,
    pass: ms => ageMysql(pool, ms),
    async count(table) {
      const [[row]] = await pool.query<never[]>(`SELECT count(*) AS n FROM ${table}`);
      return (row as unknown as { n: number }).n;
    },
    async clear() {
      for (const table of TABLES) await pool.query(`DELETE FROM ${table}`);
    },
    async drop() {
      await pool.end();
      await drop();
    },
  };
};

/** Waits until the server has seen that connections are gone: it holds their locks until then. */
const untilGone = async (admin: Pool, ids: readonly number[]): Promise<void> => {
  for (let rows: unknown[] = [...ids]; rows.length > 0; ) [rows] = await admin.query<never[]>('SELECT id FROM information_schema.processlist WHERE id IN (?)', [ids]);
};

/** Ends a connection from outside. */
export const cutMysql = async (admin: Pool, { threadId }: Pick<PoolConnection, 'threadId'>): Promise<void> => {
  await admin.query(`KILL CONNECTION ${threadId}`);
  await untilGone(admin, [threadId]);
};

/** A run in `tx` mode has a connection for itself, and the cases have 50 runs at once. */
const WORKER_CONNECTIONS = 55;

/** A server process with connections of its own. */
export const mysqlWorker = ({ place, pool: admin }: Pick<MysqlDatabase, 'place' | 'pool'>, options: MysqlDedupStoreOptions): Worker => {
  const pool = createPool({ ...place, connectionLimit: WORKER_CONNECTIONS });
  const open = new Map<number, { destroy(): void }>();
  pool.on('connection', connection => open.set(connection.threadId as number, connection));
  const die = async (): Promise<void> => {
    // A dead process opens no connections; one that lives on would renew its leases.
    pool.end().catch(() => {});
    for (const connection of open.values()) connection.destroy();
    await untilGone(admin, [...open.keys()]);
  };
  let death: Promise<void> | undefined;
  return { store: mysqlDedupStore(fromMysql2(pool), options), die: () => (death ??= die()) };
};

/** Effects as rows of the transaction that records the answer. */
export const mysqlLedger = (pool: Pool): EffectLedger<HandlerContext> => ({
  async add(id, context) {
    const connection = (await context?.transaction()) as PoolConnection;
    await connection.query('INSERT INTO charges (label) VALUES (?)', [id]);
  },
  async count(id) {
    const [[row]] = await pool.query<never[]>('SELECT count(*) AS n FROM charges WHERE label = ?', [id]);
    return (row as unknown as { n: number }).n;
  },
});
