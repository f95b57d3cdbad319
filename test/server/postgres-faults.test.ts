import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { charge, charged, codeOf, insertCharge, isReplay, isWell, openShop, send, type Charge, type Shop } from './support/shop.js';
import { startTcpProxy, type CutWhen, type TcpProxy } from './support/tcp-proxy.js';

bePatient();

let shop: Shop;
let proxy: TcpProxy;
/** Goes through the proxy; small, so that a connection which does not come back is missed. */
let cuttable: pg.Pool;

beforeAll(async () => {
  shop = await openShop();
  proxy = await startTcpProxy(shop.place);
  cuttable = shop.connect({ host: '127.0.0.1', port: proxy.port, max: 4 });
});
afterAll(async () => {
  await shop.close();
  await proxy.close();
});
beforeEach(() => shop.reset());

const pidOf = async (client: Pick<pg.ClientBase, 'query'>): Promise<number> => (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? Number.NaN;

/** Ends a backend and waits until it is gone. */
const terminate = (pid: number): Promise<unknown> => shop.pool.query('SELECT pg_terminate_backend($1, 10000)', [pid]);

/** Ends all backends that are in a transaction, and waits until they are gone. */
const endHolders = (): Promise<unknown> =>
  shop.pool.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`);

/** Afterwards all connections must be usable, and no backend may hold anything. */
const expectWell = async (): Promise<void> => {
  await expect.poll(() => shop.busyBackends()).toBe(0);
  expect(await isWell(cuttable)).toBe(true);
};

/** Repeats the request as clients do, until it is answered with a success. */
const repeat = async (again: () => Promise<Response>): Promise<Response> => {
  let response = await again();
  await expect.poll(async () => response.status === 201 || (response = await again()).status === 201).toBe(true);
  return response;
};

/** As it is sent: alone, and not READ COMMITTED. */
const COMMIT = 'COMMIT\0';

const COMMIT_CUTS: readonly CutWhen[] = ['before', 'meanwhile', 'after'];

for (const mode of ['tx', 'single-tx', 'lease'] as const) {
  describe(`a connection that is lost, ${mode}`, () => {
    it('in the handler: nothing of the run stays, and the same request runs at once', async () => {
      const dedup = shop.dedup({ mode }, { pool: cuttable });
      const dying: Charge = async (request, context) => {
        const tx = await context.transaction();
        await insertCharge(tx, context);
        await terminate(await pidOf(tx));
        return charge(request, context);
      };
      expect((await send(dedup, dying, 'k')).status).toBe(500);
      expect(await shop.charges()).toBe(0);
      const again = await send(dedup, charge, 'k');
      expect([again.status, isReplay(again), await shop.charges()]).toEqual([201, false, 1]);
      await expectWell();
    });

    it('in a handler that does not notice: its answer is not given, for its effects are gone', async () => {
      const dedup = shop.dedup({ mode }, { pool: cuttable });
      const unaware: Charge = async (_request, context) => {
        const tx = await context.transaction();
        const id = await insertCharge(tx, context);
        await terminate(await pidOf(tx));
        return charged(id);
      };
      expect((await send(dedup, unaware, 'k')).status).toBe(500);
      expect([await shop.charges(), (await send(dedup, charge, 'k')).status, await shop.charges()]).toEqual([0, 201, 1]);
      await expectWell();
    });

    it('in a handler that does nothing in it: its answer is recorded all the same', async () => {
      const dedup = shop.dedup({ mode }, { pool: cuttable });
      let runs = 0;
      const elsewhere: Charge = async (_request, context) => {
        runs += 1;
        await endHolders();
        return charged(await insertCharge(shop.pool, context));
      };
      const first = await send(dedup, elsewhere, 'k');
      expect([first.status, first.headers.get('idempotency-status')]).toEqual([201, 'stored']);
      expect([isReplay(await send(dedup, elsewhere, 'k')), runs, await shop.charges()]).toEqual([true, 1, 1]);
      await expectWell();
    });

    it.each(COMMIT_CUTS)('at the commit, cut %s: what the client is told and what is recorded agree with the effects', async when => {
      const dedup = shop.dedup({ mode }, { pool: cuttable });
      const cut = proxy.cut(COMMIT, when);
      const first = await send(dedup, charge, 'k');
      await cut;
      if (when === 'before') expect(first.status).toBe(500);
      if (when === 'after') expect([first.status, await shop.charges()]).toEqual([201, 1]);
      const told = first.status === 201 ? await first.json() : undefined;
      const last = await repeat(() => send(dedup, charge, 'k'));
      const replay = await send(dedup, charge, 'k');
      const answer: unknown = await last.json();
      expect([told ?? answer, await replay.json(), isReplay(replay)]).toEqual([answer, answer, true]);
      expect((await shop.pool.query('SELECT id FROM charges')).rows).toEqual([answer]);
      await expectWell();
    });
  });
}

describe('a claim that goes wrong', () => {
  it.each(['tx', 'lease'] as const)('6, 41: whose answer gets lost is repeated by the same owner, who runs; %s', async mode => {
    const dedup = shop.dedup({ mode }, { pool: cuttable });
    const cut = proxy.cut('INSERT INTO "idempotency_keys"', 'after');
    const response = await send(dedup, charge, 'k');
    await cut;
    expect([response.status, response.headers.get('idempotency-status'), await shop.charges()]).toEqual([201, 'stored', 1]);
    await expectWell();
  });

  it('6: whose transaction is cut together with the claim runs once; single-tx', async () => {
    const dedup = shop.dedup({ mode: 'single-tx' }, { pool: cuttable });
    const cut = proxy.cut('INSERT INTO "idempotency_keys"', 'after');
    const response = await send(dedup, charge, 'k');
    await cut;
    expect([response.status, isReplay(response), await shop.charges()]).toEqual([201, false, 1]);
    await expectWell();
  });

  it.each(['tx', 'single-tx', 'lease'] as const)('whose backend is terminated while it waits is made again on another connection; %s', async mode => {
    const dedup = shop.dedup({ mode }, { pool: cuttable });
    const blocker = await shop.pool.connect();
    onTestFinished(() => blocker.release(true));
    await blocker.query('BEGIN; LOCK TABLE idempotency_keys IN EXCLUSIVE MODE');
    const response = send(dedup, charge, 'k');
    const waiting = gate<number>();
    await expect
      .poll(async () => {
        const { rows } = await shop.pool.query<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO "idempotency_keys"%'`,
        );
        if (rows[0]) waiting.open(rows[0].pid);
        return rows.length;
      })
      .toBe(1);
    await terminate(await waiting.opened);
    await blocker.query('ROLLBACK');
    expect([(await response).status, await shop.charges()]).toEqual([201, 1]);
    await expectWell();
  });

  it.each(['tx', 'single-tx', 'lease'] as const)('49: to a store that is down is answered with 503 and Retry-After, and the handler does not run; %s', async mode => {
    const nowhere = shop.connect({ host: '127.0.0.1', port: 1 });
    let runs = 0;
    const counting: Charge = (request, context) => ((runs += 1), charge(request, context));
    const response = await send(shop.dedup({ mode }, { pool: nowhere }), counting, 'k');
    expect([response.status, response.headers.get('retry-after'), await codeOf(response), runs]).toEqual([503, '1', 'idempotency_store_unavailable', 0]);
  });
});
