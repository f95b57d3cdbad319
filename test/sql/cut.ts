import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { asNumber, type SqlExecutor } from '../../src/sql/index.js';
import type { Place } from '../support/sql-servers.js';

type Cut = (sql: SqlExecutor) => Promise<void>;

/** Terminates the backend and waits until it is gone. */
export const cutPostgres = (place: Place): Cut => async sql => {
  const pid = asNumber((await sql.query('SELECT pg_backend_pid() AS pid')).rows[0]?.['pid']);
  const other = new Client(place);
  await other.connect();
  try {
    await other.query('SELECT pg_terminate_backend($1, 10000)', [pid]);
  } finally {
    await other.end();
  }
};

/** Kills the connection and waits until it is gone. */
export const cutMysql = (place: Place): Cut => async sql => {
  const id = asNumber((await sql.query('SELECT CONNECTION_ID() AS id')).rows[0]?.['id']);
  const other = await createConnection({ ...place });
  try {
    await other.query(`KILL CONNECTION ${id}`);
    for (let rows: unknown[] = [{}]; rows.length > 0; ) [rows] = await other.query<never[]>('SELECT id FROM information_schema.processlist WHERE id = ?', [id]);
  } finally {
    await other.end();
  }
};
