import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { charge, codeOf, isReplay, openShop, send, type Charge, type Shop, type ShopDedup } from './support/shop.js';

bePatient();

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** ms; an hour, so that it does not end by itself, and that an hour too much or too little would show. */
const LEASE_MS = 3_600_000;

/** Where two processes of one service may be, and how wrong their clocks. */
const SKEWS = [-10 * MINUTE_MS, 0, 10 * MINUTE_MS];
const ZONES = ['UTC', 'Asia/Tokyo', 'America/New_York'];

const CASES = SKEWS.flatMap(skew => ZONES.map(zone => ({ minutes: skew / MINUTE_MS, skew, zone })));

let shop: Shop;
beforeAll(async () => void (shop = await openShop()));
afterAll(() => shop.close());
beforeEach(() => shop.reset());

/** A process with a clock that is wrong, whose sessions are in a time zone. */
const processIn = (zone: string, skew: number, mode: 'tx' | 'lease'): { readonly dedup: ShopDedup; readonly end: () => Promise<void> } => {
  const pool = shop.connect({ max: 2, options: `-c TimeZone=${zone}` });
  const clock = { ...systemClock, now: () => Date.now() + skew };
  return { dedup: shop.dedup({ mode }, { pool, clock, lease: LEASE_MS, maxRetryAfter: LEASE_MS, effects: 'marked' }), end: () => pool.end() };
};

/** What a client of both processes sees in the life of a key. */
const story = async (mode: 'tx' | 'lease', here: ShopDedup, there: ShopDedup): Promise<unknown[]> => {
  const [entered, end] = [gate(), gate()];
  const slow: Charge = async (request, context) => {
    entered.open();
    await end.opened;
    return charge(request, context);
  };
  const first = send(here, slow, 'k');
  await entered.opened;
  const duplicate = await send(there, charge, 'k');
  const retryAfter = Number(duplicate.headers.get('retry-after'));
  const told = [duplicate.status, await codeOf(duplicate), retryAfter > 0 && retryAfter <= LEASE_MS / 1000, mode === 'lease' && retryAfter > LEASE_MS / 1000 - 60];
  end.open();
  const answers: unknown[] = [...told, (await first).status];
  for (const pass of [0, DAY_MS - MINUTE_MS, MINUTE_MS + 1]) {
    await shop.pass(pass);
    const again = await send(there, charge, 'k');
    answers.push([again.status, isReplay(again), await shop.charges()]);
  }
  return answers;
};

/** A lease that ends while nobody renews it. */
const deadStory = async (here: ShopDedup, there: ShopDedup): Promise<unknown[]> => {
  const entered = gate();
  const dead: Charge = () => {
    entered.open();
    return new Promise<never>(() => {});
  };
  void send(here, dead, 'dead');
  await entered.opened;
  await shop.pass(LEASE_MS - MINUTE_MS);
  const before = await send(there, charge, 'dead');
  await shop.pass(MINUTE_MS + 1);
  const after = await send(there, charge, 'dead');
  return [before.status, Number(before.headers.get('retry-after')) <= MINUTE_MS / 1000, after.status, isReplay(after), await shop.charges('dead')];
};

describe.each(CASES)('C93, 56: a process that is $minutes minutes wrong, in $zone, beside one that is as wrong the other way, in Tokyo', ({ skew, zone }) => {
  it.each(['tx', 'lease'] as const)('sees what every other one sees; %s', async mode => {
    const [here, there] = [processIn(zone, skew, mode), processIn('Asia/Tokyo', -skew, mode)];
    expect(await story(mode, here.dedup, there.dedup)).toEqual([
      409, 'idempotency_in_progress', true, mode === 'lease', 201, [201, true, 1], [201, true, 1], [201, false, 2],
    ]);
    if (mode === 'lease') expect(await deadStory(here.dedup, there.dedup)).toEqual([409, true, 201, false, 1]);
    await Promise.all([here.end(), there.end()]);
  });
});
