import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { fromPg } from '../../src/sql/pg.js';
import { gate } from '../support/gate.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { charge, codeOf, isReplay, isWell, openShop, send, type Charge, type ChargeContext, type Shop } from './support/shop.js';

bePatient();

const MODES = ['tx', 'single-tx', 'lease'] as const;

let shop: Shop;
beforeAll(async () => void (shop = await openShop()));
afterAll(() => shop.close());
beforeEach(() => shop.reset());

const keys = (count: number): string[] => Array.from({ length: count }, (_, at) => `key-${at}`);

/** How many answers of each kind there are. */
const tally = (responses: readonly Response[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const response of responses) {
    const kind = isReplay(response) ? 'replay' : String(response.status);
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
};

/** A handler that stands still, in its transaction, until it is let go on. */
const held = (handler: Charge = charge): { readonly handler: Charge; readonly entered: Promise<void>; readonly goOn: () => void } => {
  const [entered, end] = [gate(), gate()];
  return {
    async handler(request, context) {
      await context.transaction();
      entered.open();
      await end.opened;
      return handler(request, context);
    },
    entered: entered.opened,
    goOn: end.open,
  };
};

describe.each([50, 200])('%i requests with one key at once', count => {
  it.each(MODES)('28, C75: one runs, the others hear 409 or get its answer, and no connection is left in a transaction; %s', async mode => {
    const dedup = shop.dedup({ mode });
    const responses = await Promise.all(Array.from({ length: count }, () => send(dedup, charge, 'k')));
    const { 201: executed, replay = 0, 409: refused = 0, ...others } = tally(responses);
    expect([executed, replay + refused, others, await shop.charges()]).toEqual([1, count - 1, {}, 1]);
    expect([await isWell(shop.pool), await shop.busyBackends(), shop.failures]).toEqual([true, 0, []]);
  });

  it.each(['tx', 'lease'] as const)('28: none of the others waits for the one that runs; %s', async mode => {
    const dedup = shop.dedup({ mode });
    const { handler, entered, goOn } = held();
    const first = send(dedup, handler, 'k');
    await entered;
    expect(tally(await Promise.all(Array.from({ length: count - 1 }, () => send(dedup, charge, 'k'))))).toEqual({ 409: count - 1 });
    goOn();
    expect([(await first).status, isReplay(await send(dedup, charge, 'k')), await shop.charges(), await isWell(shop.pool)]).toEqual([201, true, 1, true]);
  });
});

describe('different keys', () => {
  it.each(MODES)('32: never wait for each other; %s', async mode => {
    const dedup = shop.dedup({ mode });
    const { handler, entered, goOn } = held();
    const first = send(dedup, handler, 'held');
    await entered;
    expect(tally(await Promise.all(keys(50).map(key => send(dedup, charge, key))))).toEqual({ 201: 50 });
    goOn();
    expect([(await first).status, await shop.charges()]).toEqual([201, 51]);
  });

  it.each(MODES)('C78: not even those with equal hashes, for there are no advisory locks; %s', async mode => {
    const { rows } = await shop.pool.query<{ one: string; other: string }>(
      'SELECT min(key) AS one, max(key) AS other FROM (SELECT \'key-\' || n AS key FROM generate_series(1, 200000) n) keys GROUP BY hashtext(key) HAVING count(*) > 1 LIMIT 1',
    );
    const { one, other } = rows[0] ?? { one: '', other: '' };
    expect(one).not.toBe(other);
    const dedup = shop.dedup({ mode });
    const { handler, entered, goOn } = held();
    const first = send(dedup, handler, one);
    await entered;
    expect((await send(dedup, charge, other)).status).toBe(201);
    const locks = `SELECT locktype FROM pg_locks JOIN pg_database d ON d.oid = database WHERE datname = current_database() AND locktype = 'advisory'`;
    expect((await shop.pool.query(locks)).rows).toEqual([]);
    goOn();
    expect([(await first).status, await shop.charges()]).toEqual([201, 2]);
  });
});

describe('200 requests over a pool of 5', () => {
  const KEYS = keys(40);

  it.each(MODES)('all get through, five of each key; %s', async mode => {
    const small = shop.connect({ max: 5 });
    onTestFinished(() => small.end());
    const dedup = shop.dedup({ mode }, { pool: small });
    const responses = await Promise.all([...KEYS, ...KEYS, ...KEYS, ...KEYS, ...KEYS].map(key => send(dedup, charge, key)));
    const { 201: executed, replay = 0, 409: refused = 0, ...others } = tally(responses);
    expect([executed, replay + refused, others, await shop.charges(), await isWell(small)]).toEqual([40, 160, {}, 40, true]);
  });

  it.each(['tx', 'lease'] as const)('all get through that announce effects elsewhere over a pool of its own; %s', async mode => {
    const [small, control] = [shop.connect({ max: 5 }), shop.connect({ max: 1 })];
    onTestFinished(async () => void (await Promise.all([small.end(), control.end()])));
    const dedup = shop.dedup({ mode, control: fromPg(control) }, { pool: small });
    const announcing: Charge = async (request, context) => {
      await context.transaction();
      await context.effectStarted();
      return charge(request, context);
    };
    const responses = await Promise.all([...KEYS, ...KEYS, ...KEYS, ...KEYS, ...KEYS].map(key => send(dedup, announcing, key)));
    const { 201: executed, replay = 0, 409: refused = 0, ...others } = tally(responses);
    expect([executed, replay + refused, others, await shop.charges(), await isWell(small)]).toEqual([40, 160, {}, 40, true]);
  });
});

describe('as many announcements of effects elsewhere as the only pool has connections', () => {
  it.each(['tx', 'lease'] as const)('fail after 10 s and say why, until one has a connection; nothing happened, and the keys are free; %s', async mode => {
    const clock = manualClock();
    const small = shop.connect({ max: 3 });
    onTestFinished(() => small.end());
    const dedup = shop.dedup({ mode }, { pool: small, clock });
    const all = gate();
    let waiting = 0;
    const announcing: Charge = async (request, context: ChargeContext) => {
      await context.transaction();
      waiting += 1;
      if (waiting === 3) all.open();
      await all.opened;
      await context.effectStarted();
      return charge(request, context);
    };
    const responses = Promise.all(keys(3).map(key => send(dedup, announcing, key)));
    await all.opened;
    // Each waits for its connection, and for the time-out of that.
    await expect.poll(() => [small.waitingCount >= 3, clock.sleeping >= 3]).toEqual([true, true]);
    await clock.advance(10_000);
    const { 500: failed = 0, 201: executed = 0 } = tally(await responses);
    expect([failed > 0, failed + executed, await shop.charges()]).toEqual([true, 3, executed]);
    expect(shop.failures).toMatchObject(Array.from({ length: failed }, () => ({ name: 'TimeoutError', message: expect.stringContaining('pool') as string })));
    await expect.poll(() => isWell(small)).toBe(true);
    const again = await Promise.all(keys(3).map(key => send(dedup, charge, key)));
    expect([again.map(({ status }) => status), await shop.charges()]).toEqual([[201, 201, 201], 3]);
  });
});

describe('a handler that announces an effect where everybody else does too', () => {
  it.each(['tx', 'lease'] as const)('C75: leaves doubt, and no connection, when it fails; %s', async mode => {
    const dedup = shop.dedup({ mode });
    const failing: Charge = async (_request, context) => {
      await context.transaction();
      await context.effectStarted();
      throw new TypeError('the network went away');
    };
    const responses = await Promise.all(Array.from({ length: 50 }, () => send(dedup, failing, 'k')));
    const { 500: failed, 409: refused = 0, ...others } = tally(responses);
    expect([failed, refused, others, await shop.state('k')]).toEqual([1, 49, {}, 'indeterminate']);
    expect([await codeOf(await send(dedup, charge, 'k')), await isWell(shop.pool), await shop.charges()]).toEqual(['idempotency_indeterminate', true, 0]);
  });
});
