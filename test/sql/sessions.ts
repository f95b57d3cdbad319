import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { Pool } from 'pg';
import { asNumber, type SqlExecutor } from '../../src/sql/index.js';
import type { Place } from '../support/sql-servers.js';

/** The sessions that a driver under test has on a server, seen and ended through a connection beside it. */
export interface Sessions {
  /** Those that stay in a transaction: the server may take a moment more than the driver to end one. */
  inTransaction(): Promise<number>;
  /** Ends the session that `sql` works in, and returns when it is gone. */
  cut(sql: SqlExecutor): Promise<void>;
  end(): Promise<void>;
}

/** Looks at what remains, as long as it is not long. */
const LOOKS = 50;
const PAUSE_MS = 20;

const remaining = async (count: () => Promise<number>): Promise<number> => {
  let left = await count();
  for (let look = 1; look < LOOKS && left > 0; look += 1) {
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS));
    left = await count();
  }
  return left;
};

export const postgresSessions = (place: Place): Sessions => {
  // A pool, because it queues what is asked at the same time.
  const beside = new Pool({ ...place, max: 1 });
  return {
    inTransaction: () => remaining(async () => {
      const { rows } = await beside.query(`SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`);
      return asNumber((rows as { n: unknown }[])[0]?.n);
    }),
    async cut(sql) {
      const pid = asNumber((await sql.query('SELECT pg_backend_pid() AS pid')).rows[0]?.['pid']);
      await beside.query('SELECT pg_terminate_backend($1, 10000)', [pid]);
    },
    end: () => beside.end(),
  };
};

const rowsOf = async (connection: Connection, statement: string): Promise<readonly RowDataPacket[]> => (await connection.query<RowDataPacket[]>(statement))[0];

export const mysqlSessions = async (place: Place): Promise<Sessions> => {
  const beside = await createConnection({ ...place });
  return {
    inTransaction: () => remaining(async () => {
      const rows = await rowsOf(beside, `SELECT 1 FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE()`);
      return rows.length;
    }),
    async cut(sql) {
      const id = asNumber((await sql.query('SELECT CONNECTION_ID() AS id')).rows[0]?.['id']);
      await beside.query(`KILL CONNECTION ${id}`);
      while ((await rowsOf(beside, `SELECT 1 FROM information_schema.processlist WHERE id = ${id}`)).length > 0);
    },
    end: () => beside.end(),
  };
};
