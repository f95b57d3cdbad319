import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { startEmbeddedPostgres } from '../../support/services/embedded-postgres.js';
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

export const startOwnPostgres = async (): Promise<OwnPostgres> => {
  const { place, directory, start, stop } = await startEmbeddedPostgres(['-c', 'fsync=on', '-c', 'synchronous_commit=on']);
  return {
    place, start,
    close: stop,
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
  };
};
