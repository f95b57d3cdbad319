import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { stripe } from '../../src/profiles/index.js';
import { gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { charge, charged, codeOf, insertCharge, isReplay, isWell, openShop, send, type Charge, type Shop, type ShopDedup } from './support/shop.js';

bePatient();

/** Waits take no time. */
const hastyClock = { ...systemClock, sleep: async () => {} };

let shop: Shop;
beforeAll(async () => {
  // Deadlocks are real; only their discovery is quicker than the second that PostgreSQL gives them.
  shop = await openShop({ max: 10, options: '-c deadlock_timeout=10ms' });
  await shop.pool.query('CREATE TABLE accounts (id text PRIMARY KEY, balance int)');
});
afterAll(() => shop.close());
beforeEach(async () => {
  await shop.reset();
  await shop.pool.query(`TRUNCATE accounts; INSERT INTO accounts VALUES ('x', 0), ('y', 0)`);
});

/** Lets the first two who come wait for each other, and nobody after them. */
const meeting = (): (() => Promise<void>) => {
  const both = gate();
  let here = 0;
  return async () => {
    here += 1;
    if (here >= 2) both.open();
    await both.opened;
  };
};

interface Counted {
  readonly handler: Charge;
  readonly runs: () => number;
}

const counting = (handler: Charge): Counted => {
  let runs = 0;
  return { handler: (request, context) => ((runs += 1), handler(request, context)), runs: () => runs };
};

/** Two handlers, each of which has the row that the other one wants next. */
const deadlock = (before?: Charge): Counted => {
  const meet = meeting();
  return counting(async (request, context) => {
    await before?.(request, context);
    const tx = await context.transaction();
    const rows = context.key === 'a' ? ['x', 'y'] : ['y', 'x'];
    await tx.query('UPDATE accounts SET balance = balance + 1 WHERE id = $1', [rows[0]]);
    await meet();
    await tx.query('UPDATE accounts SET balance = balance + 1 WHERE id = $1', [rows[1]]);
    return charged(await insertCharge(tx, context));
  });
};

/** Two handlers, each of which reads what the other one writes: no serial order explains both. */
const writeSkew = (): Counted => {
  const meet = meeting();
  return counting(async (_request, context) => {
    const tx = await context.transaction();
    await tx.query('SELECT sum(balance) FROM accounts');
    await meet();
    await tx.query('UPDATE accounts SET balance = balance + 1 WHERE id = $1', [context.key === 'a' ? 'x' : 'y']);
    return charged(await insertCharge(tx, context));
  });
};

const both = (dedup: ShopDedup, handler: Charge): Promise<Response[]> => Promise.all(['a', 'b'].map(key => send(dedup, handler, key)));

const statuses = (responses: readonly Response[]): number[] => responses.map(({ status }) => status).sort();

const chargesOfEach = async (): Promise<number[]> => [await shop.charges('a'), await shop.charges('b')];

const balances = async (): Promise<number[]> => (await shop.pool.query<{ balance: number }>('SELECT balance FROM accounts ORDER BY id')).rows.map(({ balance }) => balance);

describe.each(['tx', 'single-tx', 'lease'] as const)('40P01: a deadlock of two handlers, %s', mode => {
  it('is an error to neither client: one runs again, and each has one effect', async () => {
    const { handler, runs } = deadlock();
    const dedup = shop.dedup({ mode });
    expect([statuses(await both(dedup, handler)), runs(), await balances(), await chargesOfEach()]).toEqual([[201, 201], 3, [2, 2], [1, 1]]);
    expect([isReplay(await send(dedup, charge, 'a')), isReplay(await send(dedup, charge, 'b')), shop.failures]).toEqual([true, true, []]);
    expect(await isWell(shop.pool)).toBe(true);
  });
});

describe('40P01: a deadlock of two handlers, in a dialect that stores every failure', () => {
  it.each(['tx', 'lease'] as const)('is none: one runs again, and each has one effect; %s', async mode => {
    const { handler, runs } = deadlock();
    const dedup = shop.dedup({ mode }, { profile: stripe });
    expect([statuses(await both(dedup, handler)), runs(), await balances(), await chargesOfEach(), shop.failures]).toEqual([[201, 201], 3, [2, 2], [1, 1], []]);
  });
});

describe.each(['tx', 'lease'] as const)('40001: a serialization failure of two handlers, %s', mode => {
  it('is an error to neither client: one runs again, and each has one effect', async () => {
    const { handler, runs } = writeSkew();
    const dedup = shop.dedup({ mode, isolation: 'serializable' });
    expect([statuses(await both(dedup, handler)), runs(), await balances(), await chargesOfEach()]).toEqual([[201, 201], 3, [1, 1], [1, 1]]);
    expect([isReplay(await send(dedup, charge, 'a')), isReplay(await send(dedup, charge, 'b')), shop.failures]).toEqual([true, true, []]);
    expect(await isWell(shop.pool)).toBe(true);
  });
});

describe.each(['tx', 'lease'] as const)('a handler whose transaction the database gives up, %s', mode => {
  it('is not run again once it has announced an effect elsewhere: the key is indeterminate', async () => {
    const { handler, runs } = deadlock((_request, context) => context.effectStarted().then(() => new Response()));
    const dedup = shop.dedup({ mode });
    const responses = await both(dedup, handler);
    expect([statuses(responses), runs(), await shop.charges()]).toEqual([[201, 500], 2, 1]);
    const victim = responses[0]?.status === 500 ? 'a' : 'b';
    const again = await send(dedup, handler, victim);
    expect([again.status, await codeOf(again), runs(), await shop.charges(victim)]).toEqual([409, 'idempotency_indeterminate', 2, 0]);
  });

  it('again and again is told when to come back, and its key stays free', async () => {
    const { handler, runs } = counting(async (_request, context) => {
      const tx = await context.transaction();
      await insertCharge(tx, context);
      await tx.query(`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`);
      return new Response('never');
    });
    const dedup = shop.dedup({ mode }, { clock: hastyClock });
    const response = await send(dedup, handler, 'k');
    expect([response.status, response.headers.get('retry-after'), await codeOf(response)]).toEqual([503, '1', 'idempotency_store_unavailable']);
    expect([runs() > 1, await shop.charges()]).toEqual([true, 0]);
    expect([(await send(dedup, charge, 'k')).status, await shop.charges()]).toEqual([201, 1]);
  });
});

describe.each(['serializable', 'repeatable read'] as const)('C74: in a database whose default is %s', level => {
  const CROWD = 20;

  it.each(['tx', 'single-tx', 'lease'] as const)('a row that cannot be seen is never taken for none: one execution per key; %s', async mode => {
    const strict = shop.connect({ options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` });
    onTestFinished(() => strict.end());
    const dedup = shop.dedup({ mode, lockTimeout: 20_000 }, { pool: strict });
    const same = await Promise.all(Array.from({ length: CROWD }, () => send(dedup, charge, 'same')));
    expect([same.filter(response => response.status === 201 && !isReplay(response)).length, await shop.charges('same')]).toEqual([1, 1]);
    expect(statuses(same.filter(({ status }) => status !== 201 && status !== 409))).toEqual([]);
    const keys = Array.from({ length: CROWD }, (_, at) => `other-${at}`);
    const others = await Promise.all(keys.map(key => send(dedup, charge, key)));
    // Serializable transactions fail wherever their rows are neighbours. Who was too unlucky too often is told to come back.
    expect(statuses(others.filter(({ status }) => status !== 201 && (status !== 503 || level !== 'serializable')))).toEqual([]);
    for (const key of keys) expect([(await send(dedup, charge, key)).status, await shop.charges(key)]).toEqual([201, 1]);
    expect(shop.failures).toEqual([]);
  });
});

describe('C74: single-tx: a claim that meets another one which is not committed', () => {
  const entering = (opened: Promise<void>, entered: () => void, end: Charge): Charge => async (request, context) => {
    await context.transaction();
    entered();
    await opened;
    return end(request, context);
  };

  const waitsForLock = (): Promise<void> =>
    expect.poll(async () => Number((await shop.pool.query(`SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)).rows[0].n)).toBe(1);

  it.each([
    ['waits, and replays its answer when it is committed', charge, [201, true]],
    ['waits, and runs when it is rolled back', (async (_request, context) => {
      await (await context.transaction()).query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
      return new Response('never', { status: 201 });
    }) satisfies Charge, [201, false]],
  ])('%s', async (_fact, end, expected) => {
    const dedup = shop.dedup({ mode: 'single-tx', lockTimeout: 20_000 });
    const [entered, opened] = [gate(), gate()];
    const first = send(dedup, entering(opened.opened, entered.open, end), 'k');
    await entered.opened;
    const second = send(dedup, charge, 'k');
    await waitsForLock();
    opened.open();
    await first;
    expect([(await second).status, isReplay(await second), await shop.charges()]).toEqual([...expected, 1]);
  });
});
