import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createDedup, NoTransactionError, type Dedup, type DedupOptions, type Handler } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { postgresDedupStore, type PostgresDedupStoreOptions } from '../../src/server/stores/postgres.js';
import type { SqlMode } from '../../src/server/stores/sql/mode.js';
import { fromPg } from '../../src/sql/index.js';
import { gate, isReplay, requestOf, type Sent } from './support/endpoint.js';
import { freshPostgres, type PostgresDatabase } from './support/postgres.js';
import { describeAnnouncements, type HoldingDatabase } from './transactions/announcements.js';
import { describeDuplicates, describeStaleHandlers } from './transactions/duplicates.js';
import { describeHandlerTransactions } from './transactions/handlers.js';

type Charge = Handler<Response, PoolClient>;

let db: PostgresDatabase;
beforeAll(async () => {
  db = await freshPostgres();
});
afterAll(() => db.drop());
beforeEach(() => db.clear());

const dedupOf = (store: PostgresDedupStoreOptions = {}, options: Partial<DedupOptions<PoolClient>> = {}): Dedup<PoolClient> =>
  createDedup({ store: postgresDedupStore(db.database, store), scope: () => 'acme', on: { failed: () => {} }, ...options });

const send = (dedup: Dedup<PoolClient>, handler: Charge, sent: Sent = { key: 'k' }): Promise<Response> => dedup.handle(requestOf(sent), handler, { name: 'charge' });

const charges = async (): Promise<number> => Number((await db.pool.query('SELECT count(*) FROM charges')).rows[0].count);

const insert = async (context: Parameters<Charge>[1]): Promise<void> => {
  const tx = await context.transaction();
  await tx.query('INSERT INTO charges (label, attempt) VALUES ($1, $2)', [context.key, context.attempt]);
};

const charge: Charge = async (_request, context) => {
  await insert(context);
  return Response.json({ charged: true }, { status: 201 });
};

const databaseOf = (mode: SqlMode): HoldingDatabase<PoolClient> => ({
  store: postgresDedupStore(db.database, { mode }),
  insert: (tx, label, attempt) => tx.query('INSERT INTO charges (label, attempt) VALUES ($1, $2)', [label, attempt]),
  charges,
  pass: db.pass,
  notes: async () => Number((await db.pool.query('SELECT count(*) FROM idempotency_keys_effects')).rows[0].count),
  cut: async tx => void (await tx.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {})),
});

for (const mode of ['tx', 'single-tx', 'lease'] as const) {
  describeHandlerTransactions(`postgres, ${mode}`, () => databaseOf(mode));

  it(`C75, ${mode}: a statement that failed and was swallowed is a failure, not a success that was not committed`, async () => {
    const dedup = dedupOf({ mode });
    const swallow: Charge = async (_request, context) => {
      await insert(context);
      await (await context.transaction()).query('SELECT no_such_column').catch(() => {});
      return Response.json({ charged: true }, { status: 201 });
    };
    expect((await send(dedup, swallow)).status).toBe(500);
    expect(await charges()).toBe(0);
    expect([(await send(dedup, charge)).status, await charges()]).toEqual([201, 1]);
  });
}

for (const mode of ['tx', 'lease'] as const) describeDuplicates(`postgres, ${mode}`, () => databaseOf(mode));

describeAnnouncements('postgres', () => databaseOf('tx'));
describeStaleHandlers('postgres', () => databaseOf('lease'));

it('single-tx: effects elsewhere cannot be announced, because the record itself is not committed before them', async () => {
  const failures: unknown[] = [];
  const dedup = dedupOf({ mode: 'single-tx' }, { on: { failed: error => failures.push(error) } });
  expect((await send(dedup, async (_request, context) => (await context.effectStarted(), new Response('never')))).status).toBe(500);
  expect(failures).toMatchObject([{ message: expect.stringContaining("mode: 'tx'") }]);
});

it('a store without transactions says so to a handler that asks for one', async () => {
  const failures: unknown[] = [];
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme', on: { failed: error => failures.push(error) } });
  await dedup.handle(requestOf({ key: 'k' }), async (_request, context) => (await context.transaction(), new Response('ok')), { name: 'charge' });
  expect(failures).toEqual([expect.any(NoTransactionError)]);
});

it('single-tx: a duplicate waits for the first and gets its answer, or hears 409 when its patience ends', async () => {
  const { opened, open } = gate();
  const entered = gate();
  const slow: Charge = async (request, context) => {
    entered.open();
    await opened;
    return charge(request, context);
  };
  const first = send(dedupOf({ mode: 'single-tx' }), slow);
  await entered.opened;
  const impatient = await send(dedupOf({ mode: 'single-tx', lockTimeout: 50 }), charge);
  expect([impatient.status, impatient.headers.get('retry-after')]).toEqual([409, '1']);
  const patient = send(dedupOf({ mode: 'single-tx', lockTimeout: 20_000 }), charge);
  await expect.poll(async () => (await db.pool.query(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)).rows[0].n).toBe(1);
  open();
  expect([(await first).status, isReplay(await patient), await charges()]).toEqual([201, true, 1]);
});

for (const mode of ['tx', 'lease'] as const) {
  it(`${mode}: effects are announced through a pool of their own, when every connection of the first is held`, async () => {
    const small = new Pool({ ...db.place, max: 2 });
    const dedup = createDedup({ store: postgresDedupStore(fromPg(small), { mode, control: db.database }), scope: () => 'acme' });
    const both = [gate(), gate()] as const;
    const held = Promise.all(both.map(({ opened }) => opened));
    const run = (at: 0 | 1): Promise<Response> =>
      dedup.handle(requestOf({ key: `k${at}` }), async (_request, context) => {
        await context.transaction();
        both[at].open();
        await held;
        await context.effectStarted();
        return new Response('done');
      }, { name: 'charge' });
    const answers = await Promise.all([run(0), run(1)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await small.end();
  });
}
