import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fromPg, type SqlExecutor } from '../../src/sql/index.js';
import { gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { charge, charged, codeOf, insertCharge, isReplay, openShop, send, type Charge, type Shop } from './support/shop.js';

bePatient();

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

let shop: Shop;
beforeAll(async () => void (shop = await openShop()));
afterAll(() => shop.close());
beforeEach(() => shop.reset());

const fail: Charge = async () => {
  throw new TypeError('boom');
};

/** Announces an effect elsewhere, has it, and dies with its connection before it can say so. */
const die: Charge = async (_request, context) => {
  const tx = await context.transaction();
  await context.effectStarted();
  const id = await insertCharge(shop.pool, context);
  await tx.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
  return charged(id);
};

describe('C69: an effect elsewhere, announced by a run that died in its transaction, is never repeated', () => {
  /** What there was of the key before the run that dies. */
  const pasts: Record<string, () => Promise<unknown>> = {
    nothing: async () => {},
    'a run that failed': () => send(shop.dedup(), fail, 'k'),
    'a run that was turned away': () => send(shop.dedup(), async () => new Response(null, { status: 429 }), 'k'),
    'an answer that has expired': async () => {
      await send(shop.dedup(), async () => new Response('old'), 'k');
      await shop.pass(DAY_MS + 1);
    },
    'a run that died before it announced anything': () =>
      send(shop.dedup(), async (_request, context) => {
        await (await context.transaction()).query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
        return new Response('never');
      }, 'k'),
  };
  it.each(Object.keys(pasts))('after %s', async past => {
    await pasts[past]?.();
    const dedup = shop.dedup();
    expect((await send(dedup, die, 'k')).status).toBe(500);
    const again = await send(dedup, charge, 'k');
    expect([again.status, await codeOf(again), await shop.charges()]).toEqual([409, 'idempotency_indeterminate', 1]);
    expect(await shop.state('k')).toBe('indeterminate');
  });

  it.each(Object.keys(pasts))('after %s and a purge', async past => {
    await pasts[past]?.();
    const dedup = shop.dedup();
    await send(dedup, die, 'k');
    await shop.pass(2 * DAY_MS);
    expect(await dedup.purge()).toMatchObject({ deleted: 0, doubted: 1, indeterminate: 1 });
    expect([await codeOf(await send(dedup, charge, 'k')), await shop.charges()]).toEqual(['idempotency_indeterminate', 1]);
    expect(await dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'not-applied')).toBe(true);
    expect([(await send(dedup, charge, 'k')).status, await shop.charges()]).toEqual([201, 2]);
  });
});

it('C69: an announcement that is written late hides no newer one', async () => {
  const [late, written] = [gate(), gate()];
  const slow: SqlExecutor = {
    async query(text, values) {
      await late.opened;
      const result = await fromPg(shop.pool).query(text, values);
      written.open();
      return result;
    },
  };
  const impatient: Charge = async (_request, context) => {
    // It gives up before the announcement is acknowledged, so it has no effect.
    context.effectStarted().catch(() => {});
    throw new TypeError('boom');
  };
  expect((await send(shop.dedup({ control: slow }), impatient, 'k')).status).toBe(500);
  expect((await send(shop.dedup(), die, 'k')).status).toBe(500);
  late.open();
  await written.opened;
  expect([await codeOf(await send(shop.dedup(), charge, 'k')), await shop.charges()]).toEqual(['idempotency_indeterminate', 1]);
});

describe('a run whose lease is over while its transaction goes on', () => {
  const slow = (entered: () => void, opened: Promise<void>): Charge => async (request, context) => {
    await context.transaction();
    entered();
    await opened;
    return charge(request, context);
  };

  it('39: and whom nobody follows commits its effects and its answer', async () => {
    const dedup = shop.dedup({ mode: 'lease' }, { lease: HOUR_MS });
    const [entered, end] = [gate(), gate()];
    const first = send(dedup, slow(entered.open, end.opened), 'k');
    await entered.opened;
    await shop.pass(HOUR_MS + 1);
    end.open();
    expect([(await first).status, await shop.charges(), isReplay(await send(dedup, charge, 'k'))]).toEqual([201, 1, true]);
  });

  it('39: and that others called indeterminate commits its effects and its answer: nobody ran since', async () => {
    const dedup = shop.dedup({ mode: 'lease' }, { lease: HOUR_MS });
    const [entered, end] = [gate(), gate()];
    const first = send(dedup, slow(entered.open, end.opened), 'k');
    await entered.opened;
    await shop.pass(HOUR_MS + 1);
    expect(await codeOf(await send(dedup, charge, 'k'))).toBe('idempotency_indeterminate');
    end.open();
    expect([(await first).status, await shop.charges(), isReplay(await send(dedup, charge, 'k'))]).toEqual([201, 1, true]);
  });

  it('and of which somebody has said meanwhile that it did nothing leaves nothing', async () => {
    const dedup = shop.dedup({ mode: 'lease' }, { lease: HOUR_MS });
    const [entered, end] = [gate(), gate()];
    const first = send(dedup, slow(entered.open, end.opened), 'k');
    await entered.opened;
    await shop.pass(HOUR_MS + 1);
    expect(await dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'not-applied')).toBe(true);
    end.open();
    expect([(await first).status, await shop.charges()]).toEqual([409, 0]);
    expect([(await send(dedup, charge, 'k')).status, await shop.charges()]).toEqual([201, 1]);
  });
});

describe('an announcement that was committed while the statement that locked the row had an older view of the notes', () => {
  // What that view would have missed is written down after the lock is there.
  const late = (handler: Charge): Charge => async (request, context) => {
    await shop.pool.query('INSERT INTO idempotency_keys_effects SELECT scope, id_key, fence + 1, now() FROM idempotency_keys');
    return handler(request, context);
  };
  const announcing: Charge = async (request, context) => {
    await context.effectStarted();
    return charge(request, context);
  };
  const swallowing: Charge = async (request, context) => {
    await context.effectStarted().catch(() => {});
    return charge(request, context);
  };
  it.each([['says nothing itself', charge], ['announces an effect too', announcing], ['goes on where it must not', swallowing]])('a run that %s is rolled back, and the key is in doubt', async (_name, handler) => {
    expect((await send(shop.dedup(), late(handler), 'k')).status).toBe(500);
    expect([await shop.charges(), await codeOf(await send(shop.dedup(), charge, 'k')), await shop.charges()]).toEqual([0, 'idempotency_indeterminate', 0]);
  });
});
