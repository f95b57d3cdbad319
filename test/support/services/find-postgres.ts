import { Client } from 'pg';
import { POSTGRES_URL } from '../sql-servers.js';
import { startEmbeddedPostgres } from './embedded-postgres.js';

/** A PostgreSQL server for tests. */
export interface PostgresServer {
  readonly url: string;
  /** Ends it, if it was started for the tests. */
  stop(): Promise<void>;
}

export const startNewestPostgres = async (): Promise<PostgresServer> => {
  const { place: { user, password, host, port, database }, stop } = await startEmbeddedPostgres();
  return { url: `postgres://${user}:${password}@${host}:${port}/${database}`, stop };
};

/** What a connection to `url` fails with, if it does. */
const failureAt = async (url: string): Promise<unknown> => {
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await client.end().catch(() => {});
  }
};

/**
 * The server that is `named` (a URL, or 'embedded'); without a name the machine's own, and where there is none, one that
 * is started for the tests. It rejects where a named server does not answer.
 */
export const findPostgres = async (named: string | undefined, standard: string = POSTGRES_URL): Promise<PostgresServer> => {
  if (named === 'embedded') return startNewestPostgres();
  const url = named ?? standard;
  const failure = await failureAt(url);
  if (failure === undefined) return { url, stop: async () => {} };
  if (named === undefined) return startNewestPostgres();
  throw new Error(`No PostgreSQL answers at ${named}, which SAMEKEY_POSTGRES names. Start it, or unset the variable: the tests start one by themselves.`, { cause: failure });
};
