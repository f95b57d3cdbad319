import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDedup, type Dedup } from '../../../src/server/index.js';
import { migrate } from '../../../src/server/migrate.js';
import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { fromPg } from '../../../src/sql/pg.js';
import { startOwnPostgres, type OwnPostgres } from '../support/own-postgres.js';
import { charge, isReplay, send } from '../support/shop.js';

/** Only catches hangs: a server starts slowly on a busy machine. */
const PATIENCE_MS = 120_000;

/** ms; short, because whoever repeats a request whose record could not be written waits for it. */
const LEASE_MS = 500;

const CLIENTS = 12;
const CONNECTIONS = 8;
const CRASHES = 4;

/** Answers between two crashes. */
const PEACE = 40;

/** ms between two tries of a client. */
const PAUSE_MS = 10;

let server: OwnPostgres;
let pool: Pool;
beforeAll(async () => {
  server = await startOwnPostgres();
  pool = new Pool({ ...server.place, max: CONNECTIONS });
  pool.on('error', () => {});
  await migrate(fromPg(pool), 'postgres');
  await pool.query('CREATE TABLE charges (id serial PRIMARY KEY, label text, attempt int)');
}, PATIENCE_MS);
afterAll(async () => {
  await pool.end();
  await server.close();
});

interface Load {
  readonly told: Map<string, unknown>;
  /** Answers that were no success. */
  readonly setbacks: number;
  stop(): Promise<void>;
}

/** Clients that ask for a charge each, and repeat the request until they have the answer. */
const startLoad = (dedup: Dedup<PoolClient>): Load => {
  const told = new Map<string, unknown>();
  let [orders, setbacks, isOver] = [0, 0, false];
  const ask = async (key: string): Promise<unknown> => {
    for (;;) {
      const response = await send(dedup, charge, key);
      if (response.status === 201) return response.json();
      expect([409, 500, 503]).toContain(response.status);
      setbacks += 1;
      await sleep(PAUSE_MS);
    }
  };
  const client = async (): Promise<void> => {
    while (!isOver) {
      const key = `order-${(orders += 1)}`;
      told.set(key, await ask(key));
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    told,
    get setbacks() {
      return setbacks;
    },
    async stop() {
      isOver = true;
      await clients;
    },
  };
};

const crash = async (nth: number): Promise<void> => {
  if (nth % 2 === 1) return server.killBackend();
  await server.stopImmediately();
  return server.start();
};

describe('a database server that crashes under load, again and again', () => {
  test.each(['tx', 'single-tx', 'lease'] as const)('35: every request that is repeated until it is answered has one effect, of which its answers tell; %s', { timeout: PATIENCE_MS }, async mode => {
    await pool.query('TRUNCATE charges, idempotency_keys, idempotency_keys_effects');
    const store = postgresDedupStore(fromPg(pool), { mode });
    const dedup = createDedup({ store, scope: () => 'acme', lease: LEASE_MS, effects: 'marked', on: { failed: () => {} } });
    const load = startLoad(dedup);
    for (let crashes = 0; crashes < CRASHES; crashes += 1) {
      const enough = load.told.size + PEACE;
      while (load.told.size < enough) await sleep(1);
      await crash(crashes);
    }
    await load.stop();
    expect(load.setbacks).toBeGreaterThan(0);
    const { rows } = await pool.query<{ id: number; label: string }>('SELECT id, label FROM charges');
    expect([rows.length, new Map(rows.map(({ id, label }) => [label, { id }]))]).toEqual([load.told.size, load.told]);
    for (const [key, answer] of load.told) {
      const replay = await send(dedup, charge, key);
      expect([isReplay(replay), await replay.json()]).toEqual([true, answer]);
    }
  });
});
