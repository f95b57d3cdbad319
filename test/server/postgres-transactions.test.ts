import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDedup, NoTransactionError, type Dedup, type DedupOptions, type Handler } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { postgresDedupStore, type PostgresDedupStoreOptions } from '../../src/server/stores/postgres.js';
import { fromPg } from '../../src/sql/index.js';
import { gate, isReplay, requestOf, type Sent } from './conformance/stage.js';
import { freshPostgres, type PostgresDatabase } from './support/postgres.js';

type Charge = Handler<Response, pg.PoolClient>;

let db: PostgresDatabase;
beforeAll(async () => {
  db = await freshPostgres();
});
afterAll(() => db.drop());
beforeEach(() => db.clear());

const dedupOf = (store: PostgresDedupStoreOptions = {}, options: Partial<DedupOptions<pg.PoolClient>> = {}): Dedup<pg.PoolClient> =>
  createDedup({ store: postgresDedupStore(db.database, store), scope: () => 'acme', on: { failed: () => {} }, ...options });

const send = (dedup: Dedup<pg.PoolClient>, handler: Charge, sent: Sent = { key: 'k' }): Promise<Response> => dedup.handle(requestOf(sent), handler, { name: 'charge' });

const charges = async (): Promise<number> => Number((await db.pool.query('SELECT count(*) FROM charges')).rows[0].count);

const rowOf = async (key: string): Promise<Record<string, unknown> | undefined> =>
  (await db.pool.query('SELECT status, response_code, attempts, fence::int, request_hash IS NULL AS cleared FROM idempotency_keys WHERE id_key = $1', [key])).rows[0];

const insert = async (context: Parameters<Charge>[1]): Promise<void> => {
  const tx = await context.transaction();
  await tx.query('INSERT INTO charges (label, attempt) VALUES ($1, $2)', [context.key, context.attempt]);
};

const charge: Charge = async (_request, context) => {
  await insert(context);
  return Response.json({ charged: true }, { status: 201 });
};

for (const mode of ['tx', 'single-tx', 'lease'] as const) {
  describe(`the transaction of a handler, ${mode}`, () => {
    it('commits effects and answer together', async () => {
      const dedup = dedupOf({ mode });
      const first = await send(dedup, charge);
      expect([first.status, first.headers.get('idempotency-status'), await charges()]).toEqual([201, 'stored', 1]);
      const again = await send(dedup, charge);
      expect([again.status, isReplay(again), await again.json(), await charges()]).toEqual([201, true, { charged: true }, 1]);
    });

    it('rolls back what a refused request did, and stores the refusal', async () => {
      const dedup = dedupOf({ mode });
      const refuse: Charge = async (_request, context) => (await insert(context), Response.json({ no: 'funds' }, { status: 402 }));
      expect((await send(dedup, refuse)).status).toBe(402);
      expect([await charges(), await rowOf('k')]).toEqual([0, { status: 'completed', response_code: 402, attempts: 1, fence: 1, cleared: false }]);
      const again = await send(dedup, charge);
      expect([again.status, isReplay(again), await charges()]).toEqual([402, true, 0]);
    });

    it('keeps what a refused request did where that is asked for', async () => {
      const dedup = dedupOf({ mode }, { commitOnError: true });
      await send(dedup, async (_request, context) => (await insert(context), new Response(null, { status: 402 })));
      expect(await charges()).toBe(1);
    });

    it('rolls back what a failed run did, and the same request runs again', async () => {
      const dedup = dedupOf({ mode });
      const fail: Charge = async (_request, context) => {
        await insert(context);
        throw new TypeError('boom');
      };
      expect((await send(dedup, fail)).status).toBe(500);
      expect([await charges(), await rowOf('k')]).toMatchObject([0, { status: 'retryable', cleared: false }]);
      const unavailable: Charge = async (_request, context) => (await insert(context), new Response(null, { status: 503 }));
      expect((await send(dedup, unavailable)).status).toBe(503);
      expect((await send(dedup, charge, { key: 'k', body: '{"amount":1}' })).status).toBe(422);
      expect([(await send(dedup, charge)).status, await charges()]).toEqual([201, 1]);
    });

    it('rolls back for who was turned away, and any request may use the key', async () => {
      const dedup = dedupOf({ mode });
      await send(dedup, async (_request, context) => (await insert(context), new Response(null, { status: 429 })));
      expect([await charges(), await rowOf('k')]).toMatchObject([0, { status: 'retryable', cleared: true }]);
      expect([(await send(dedup, charge, { key: 'k', body: '{"amount":1}' })).status, await charges()]).toEqual([201, 1]);
    });

    it('C75: a statement that failed and was swallowed is a failure, not a success that was not committed', async () => {
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

    it('is an ordinary one without a key, and ends the same way', async () => {
      const dedup = dedupOf({ mode }, { required: false });
      expect((await send(dedup, charge, {})).headers.get('idempotency-status')).toBe('none');
      expect(await charges()).toBe(1);
      await send(dedup, async (_request, context) => (await insert(context), new Response(null, { status: 400 })), {});
      await expect(send(dedup, async (_request, context) => (await insert(context), Promise.reject(new Error('boom'))), {})).rejects.toThrow('boom');
      expect(await charges()).toBe(1);
    });
  });
}

for (const mode of ['tx', 'lease'] as const) {
  describe(`duplicates, ${mode}`, () => {
    it('C91: a duplicate hears 409 at once while the first run goes on, another body 422, other keys run', async () => {
      const dedup = dedupOf({ mode });
      const { opened, open } = gate();
      const entered = gate();
      const slow: Charge = async (request, context) => {
        await insert(context);
        entered.open();
        await opened;
        return charge(request, context);
      };
      const first = send(dedup, slow);
      await entered.opened;
      const duplicate = await send(dedup, charge);
      expect([duplicate.status, duplicate.headers.get('retry-after')]).toEqual([409, expect.stringMatching(/^[1-5]$|^30$/)]);
      expect((await send(dedup, charge, { key: 'k', body: '{"amount":1}' })).status).toBe(422);
      expect((await send(dedup, charge, { key: 'other' })).status).toBe(201);
      open();
      expect([(await first).status, isReplay(await send(dedup, charge))]).toEqual([201, true]);
    });
  });
}

describe('effects elsewhere, announced in a transaction', () => {
  const external: Charge = async (_request, context) => {
    await insert(context);
    await context.effectStarted();
    throw new TypeError('the network went away');
  };

  it('C69: a failure after them leaves doubt, and what the transaction did is rolled back', async () => {
    const dedup = dedupOf();
    expect((await send(dedup, external)).status).toBe(500);
    const again = await send(dedup, charge);
    expect([again.status, await again.json(), await charges()]).toMatchObject([409, { code: 'idempotency_indeterminate', safe_new_key: false }, 0]);
    expect(await dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'not-applied')).toBe(true);
    expect([(await send(dedup, charge)).status, await charges()]).toEqual([201, 1]);
  });

  it('are not forgotten when the transaction dies with its connection', async () => {
    const dedup = dedupOf();
    const dying: Charge = async (_request, context) => {
      const tx = await context.transaction();
      await context.effectStarted();
      await tx.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
      return Response.json({ charged: true });
    };
    expect((await send(dedup, dying)).status).toBe(500);
    expect((await rowOf('k'))?.['status']).toBe('in_progress');
    expect(await (await send(dedup, charge)).json()).toMatchObject({ code: 'idempotency_indeterminate' });
    expect((await rowOf('k'))?.['status']).toBe('indeterminate');
  });

  it('count for nothing once the run that announced them has settled', async () => {
    const dedup = dedupOf();
    const both: Charge = async (request, context) => {
      await context.effectStarted();
      return charge(request, context);
    };
    await send(dedup, both);
    await db.pass(86_400_001);
    const fresh = await send(dedup, charge);
    expect([fresh.status, fresh.headers.get('idempotency-status'), await charges()]).toEqual([201, 'stored', 2]);
  });

  it('leave no notes behind when their keys are purged', async () => {
    const dedup = dedupOf();
    await send(dedup, async (request, context) => (await context.effectStarted(), charge(request, context)));
    await db.pass(86_400_001);
    expect(await dedup.purge()).toMatchObject({ deleted: 1, more: false });
    expect((await db.pool.query('SELECT count(*)::int AS n FROM idempotency_keys_effects')).rows).toEqual([{ n: 0 }]);
  });

  it('cannot be announced where the record itself is not committed before them', async () => {
    const failures: unknown[] = [];
    const dedup = dedupOf({ mode: 'single-tx' }, { on: { failed: error => failures.push(error) } });
    expect((await send(dedup, external)).status).toBe(500);
    expect(failures).toMatchObject([{ message: expect.stringContaining("mode: 'tx'") }]);
  });
});

it('a worker that dies in its transaction frees the key at once', async () => {
  const dedup = dedupOf();
  await send(dedup, async (_request, context) => {
    await insert(context);
    await (await context.transaction()).query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
    return new Response('never', { status: 201 });
  });
  expect([(await send(dedup, charge)).status, await charges()]).toEqual([201, 1]);
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

it('lease: a handler that lost its lease leaves nothing behind, and its client gets what the winner answered', async () => {
  const dedup = dedupOf({ mode: 'lease' }, { effects: 'idempotent', lease: 3_600_000 });
  const entered = gate();
  const { opened, open } = gate();
  const slow: Charge = async (_request, context) => {
    await insert(context);
    entered.open();
    await opened;
    return Response.json({ by: 'slow' }, { status: 201 });
  };
  const stale = send(dedup, slow);
  await entered.opened;
  await db.pass(3_600_001);
  const winner = await send(dedup, async (_request, context) => (await insert(context), Response.json({ by: 'winner' }, { status: 201 })));
  open();
  const overruled = await stale;
  expect([winner.status, overruled.status, await overruled.json(), isReplay(overruled)]).toEqual([201, 201, { by: 'winner' }, true]);
  expect((await db.pool.query('SELECT attempt FROM charges')).rows).toEqual([{ attempt: 2 }]);
});

for (const mode of ['tx', 'lease'] as const) {
  it(`${mode}: effects are announced through a pool of their own, when every connection of the first is held`, async () => {
    const small = new pg.Pool({ ...db.place, max: 2 });
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
