import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fromPg } from '../../src/sql/pg.js';
import { gate, type Gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { charge, charged, codeOf, insertCharge, isReplay, openShop, send, type Charge, type Shop, type ShopDedup } from './support/shop.js';

bePatient();

let shop: Shop;
beforeAll(async () => void (shop = await openShop()));
afterAll(() => shop.close());
beforeEach(() => shop.reset());

const refuse: Charge = async (_request, context) => {
  await insertCharge(await context.transaction(), context);
  return Response.json({ no: 'funds' }, { status: 402 });
};

const refuseElsewhere: Charge = async (request, context) => {
  await context.effectStarted();
  return refuse(request, context);
};

interface Paused {
  readonly dedup: ShopDedup;
  /** The transaction of the run is rolled back, and its end is not in the record. */
  readonly undone: Gate;
  readonly goOn: Gate;
}

/** A server whose process is slow between the rollback of a refused run and its record. */
const slowToRecord = (mode: 'tx' | 'single-tx'): Paused => {
  const database = fromPg(shop.pool);
  const [undone, goOn] = [gate(), gate()];
  const transaction: typeof database.transaction = async (work, options) => {
    try {
      return await database.transaction(work, options);
    } catch (error) {
      undone.open();
      await goOn.opened;
      throw error;
    }
  };
  return { dedup: shop.dedup({ mode, lockTimeout: 50 }, { database: { ...database, transaction } }), undone, goOn };
};

describe.each(['tx', 'single-tx'] as const)('between the rollback of a refused run and its record, %s', mode => {
  it('a repeat may run; what it commits is what the first client gets too', async () => {
    const { dedup, undone, goOn } = slowToRecord(mode);
    const first = send(dedup, refuse, 'k');
    await undone.opened;
    expect((await send(shop.dedup({ mode }), charge, 'k')).status).toBe(201);
    goOn.open();
    expect([(await first).status, isReplay(await first), await shop.charges()]).toEqual([201, true, 1]);
  });

  it('a repeat that goes on running is not waited for', async () => {
    const { dedup, undone, goOn } = slowToRecord(mode);
    const [entered, end] = [gate(), gate()];
    const first = send(dedup, refuse, 'k');
    await undone.opened;
    const second = send(shop.dedup({ mode }), async (request, context) => {
      await context.transaction();
      entered.open();
      await end.opened;
      return charge(request, context);
    }, 'k');
    await entered.opened;
    goOn.open();
    expect([(await first).status, await codeOf(await first)]).toEqual([409, 'idempotency_in_progress']);
    end.open();
    expect([(await second).status, isReplay(await send(shop.dedup({ mode }), charge, 'k')), await shop.charges()]).toEqual([201, true, 1]);
  });

  it('a process that dies leaves the key free', async () => {
    const { dedup, undone } = slowToRecord(mode);
    void send(dedup, refuse, 'k');
    await undone.opened;
    expect([(await send(shop.dedup({ mode }), charge, 'k')).status, await shop.charges()]).toEqual([201, 1]);
  });
});

describe('between the rollback of a refused run and its record, where effects elsewhere were announced', () => {
  it('a repeat is refused, and the record is what the run came to: nobody ran since', async () => {
    const { dedup, undone, goOn } = slowToRecord('tx');
    const first = send(dedup, refuseElsewhere, 'k');
    await undone.opened;
    expect(await codeOf(await send(shop.dedup(), charge, 'k'))).toBe('idempotency_indeterminate');
    goOn.open();
    expect([(await first).status, isReplay(await send(shop.dedup(), charge, 'k')), await shop.state('k'), await shop.charges()]).toEqual([402, true, 'completed', 0]);
  });

  it('a repeat that announced one and died is not forgotten', async () => {
    const { dedup, undone, goOn } = slowToRecord('tx');
    const first = send(dedup, refuse, 'k');
    await undone.opened;
    const dying: Charge = async (_request, context) => {
      const tx = await context.transaction();
      await context.effectStarted();
      const id = await insertCharge(shop.pool, context);
      await tx.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
      return charged(id);
    };
    expect((await send(shop.dedup(), dying, 'k')).status).toBe(500);
    goOn.open();
    expect([(await first).status, await codeOf(await first)]).toEqual([409, 'idempotency_indeterminate']);
    expect([await codeOf(await send(shop.dedup(), charge, 'k')), await shop.charges()]).toEqual(['idempotency_indeterminate', 1]);
  });

  it('a process that dies leaves doubt', async () => {
    const { dedup, undone } = slowToRecord('tx');
    void send(dedup, refuseElsewhere, 'k');
    await undone.opened;
    expect(await codeOf(await send(shop.dedup(), charge, 'k'))).toBe('idempotency_indeterminate');
  });
});
