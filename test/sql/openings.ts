import { Pool } from 'pg';
import type { SqlDatabase } from '../../src/sql/index.js';
import { createMysqlDatabase, createPostgresDatabase, type Place } from '../support/sql-servers.js';
import { mysqlSessions, postgresSessions } from './sessions.js';
import { POOL_SIZE, type Dialect } from './subject.js';
import type { OpenSubject } from './suite.js';

/** A library on a database. */
export interface Opened<Tx> {
  readonly database: SqlDatabase<Tx>;
  through(tx: Tx, text: string): Promise<unknown>;
  end(): Promise<unknown>;
}

/** A library on a database of its own, watched from beside. */
export const opening = <Tx>(dialect: Exclude<Dialect, 'sqlite'>, open: (place: Place) => Opened<Tx>) => async (): Promise<OpenSubject<Tx>> => {
  const { drop, ...place } = await (dialect === 'postgres' ? createPostgresDatabase() : createMysqlDatabase());
  const sessions = dialect === 'postgres' ? postgresSessions(place) : await mysqlSessions(place);
  const { database, through, end } = open(place);
  const close = async (): Promise<void> => {
    await end();
    await sessions.end();
    await drop();
  };
  return { subject: { database, dialect, through, lent: sessions.inTransaction, cut: sessions.cut }, close };
};

/** As the documentation of fromKysely and fromDrizzle demands. */
export const openPool = (place: Place): Pool => {
  const pool = new Pool({ ...place, max: POOL_SIZE });
  pool.on('error', () => {});
  pool.on('connect', client => client.on('error', () => {}));
  return pool;
};

export const onPostgres = async (work: (place: Place) => Promise<void>): Promise<void> => {
  const { drop, ...place } = await createPostgresDatabase();
  try {
    await work(place);
  } finally {
    await drop();
  }
};
