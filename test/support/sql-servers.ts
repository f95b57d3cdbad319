import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { newKey } from '../../src/key.js';

/** Where a database is, in the words of `pg`, `postgres` and `mysql2`. */
export interface Place {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** A database of its own, with nothing in it. */
export interface TestDatabase extends Place {
  /** Waits a few seconds for connections that are being closed; one that is still open is an error. */
  drop(): Promise<void>;
}

/** Where servers are that nobody has named otherwise. */
export const POSTGRES_URL = 'postgres://postgres:postgres@127.0.0.1:5432/postgres';
const MYSQL_URL = 'mysql://root:@127.0.0.1:3306/mysql';

/** Says that no server is there, which tests are skipped for, with this message as their reason. */
export class NoServerError extends Error {
  override readonly name = 'NoServerError';
}

const freshName = (): string => `samekey_${newKey().replaceAll('-', '')}`;

/** From a URL in the environment, so that other servers than the machine's can be tested. */
const placeOf = (variable: string, standard: string): Place => {
  const { hostname, port, username, password, pathname } = new URL(process.env[variable] ?? standard);
  return { host: hostname, port: Number(port), user: username, password: decodeURIComponent(password), database: pathname.slice(1) };
};

const onPostgres = async (place: Place, statement: string): Promise<void> => {
  const client = new Client(place);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
};

export const createPostgresDatabase = async (): Promise<TestDatabase> => {
  const server = placeOf('SAMEKEY_POSTGRES', POSTGRES_URL);
  const database = freshName();
  await onPostgres(server, `CREATE DATABASE ${database}`);
  return { ...server, database, drop: () => onPostgres(server, `DROP DATABASE ${database}`) };
};

const onMysql = async (place: Place, statement: string): Promise<void> => {
  const connection = await createConnection({ ...place }).catch((error: Error) => {
    throw new NoServerError(`no MariaDB or MySQL answers at ${place.host}:${place.port}; start one, or name another with SAMEKEY_MYSQL (${error.message})`, { cause: error });
  });
  try {
    await connection.query(statement);
  } finally {
    await connection.end();
  }
};

export const createMysqlDatabase = async (): Promise<TestDatabase> => {
  const server = placeOf('SAMEKEY_MYSQL', MYSQL_URL);
  const database = freshName();
  await onMysql(server, `CREATE DATABASE ${database} CHARACTER SET utf8mb4`);
  return { ...server, database, drop: () => onMysql(server, `DROP DATABASE ${database}`) };
};
