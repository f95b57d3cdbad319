import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { bePatient } from '../support/patience.js';
import { charge, charged, codeOf, insertCharge, isReplay, isWell, openShop, send, type Charge, type Shop } from './support/shop.js';

bePatient();

/** Waits take no time; renewals do. */
const hastyClock = { ...systemClock, sleep: async () => {} };

const HOUR_MS = 3_600_000;

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
  // A sequence counts on when a transaction is rolled back.
  await shop.pool.query(`
    CREATE SEQUENCE completions; CREATE TABLE failing (completions int);
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.status = 'completed' AND nextval('completions') <= (SELECT completions FROM failing) THEN RAISE EXCEPTION 'no completion today'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION fail()`);
});
afterAll(() => shop.close());
beforeEach(() => shop.reset());

/** Lets so many completions fail, from now on. */
const failCompletions = (count: number): Promise<unknown> => shop.pool.query(`ALTER SEQUENCE completions RESTART; DELETE FROM failing; INSERT INTO failing VALUES (${count})`);

/** Nobody repeats a completion as often. */
const FOR_EVER = 1_000;

const chargeElsewhere: Charge = async (_request, context) => {
  await context.effectStarted();
  return charged(await insertCharge(shop.pool, context));
};

describe.each(['tx', 'single-tx', 'lease'] as const)('42: a completion that fails together with the effects, %s', mode => {
  it('once: nothing is left, and the same request runs', async () => {
    await failCompletions(1);
    const dedup = shop.dedup({ mode }, { clock: hastyClock });
    expect([(await send(dedup, charge, 'k')).status, await shop.charges()]).toEqual([500, 0]);
    const again = await send(dedup, charge, 'k');
    expect([again.status, isReplay(again), await shop.charges(), await isWell(shop.pool)]).toEqual([201, false, 1, true]);
    expect(isReplay(await send(dedup, charge, 'k'))).toBe(true);
  });

  it('for ever: no effect stays, however often the request is repeated', async () => {
    await failCompletions(FOR_EVER);
    const dedup = shop.dedup({ mode }, { clock: hastyClock });
    for (let tries = 0; tries < 3; tries += 1) expect([(await send(dedup, charge, 'k')).status, await shop.charges()]).toEqual([500, 0]);
    expect(shop.failures).toMatchObject(Array.from({ length: 3 }, () => ({ message: 'no completion today' })));
    await failCompletions(0);
    expect([(await send(dedup, charge, 'k')).status, await shop.charges(), await isWell(shop.pool)]).toEqual([201, 1, true]);
  });
});

describe.each(['tx', 'lease'] as const)('42: a completion that fails after an effect elsewhere, %s', mode => {
  it('once: it is repeated, and recorded', async () => {
    await failCompletions(1);
    const dedup = shop.dedup({ mode }, { clock: hastyClock });
    const response = await send(dedup, chargeElsewhere, 'k');
    expect([response.status, response.headers.get('idempotency-status')]).toEqual([201, 'stored']);
    expect([isReplay(await send(dedup, chargeElsewhere, 'k')), await shop.charges(), await isWell(shop.pool)]).toEqual([true, 1, true]);
  });

  it('for ever: the client has its answer, and the key ends in doubt; nothing is executed again', async () => {
    await failCompletions(FOR_EVER);
    const dedup = shop.dedup({ mode }, { clock: hastyClock, lease: HOUR_MS });
    const response = await send(dedup, chargeElsewhere, 'k');
    expect([response.status, response.headers.get('idempotency-status')]).toEqual([201, 'unrecorded']);
    if (mode === 'lease') expect(await codeOf(await send(dedup, chargeElsewhere, 'k'))).toBe('idempotency_in_progress');
    await shop.pass(HOUR_MS + 1);
    expect([await codeOf(await send(dedup, chargeElsewhere, 'k')), await shop.charges(), await isWell(shop.pool)]).toEqual(['idempotency_indeterminate', 1, true]);
  });
});

describe('42: a completion that fails after effects both in the transaction and elsewhere', () => {
  const chargeBoth: Charge = async (request, context) => {
    await context.effectStarted();
    return charge(request, context);
  };

  it('leaves doubt: the ones are undone, the others are not', async () => {
    await failCompletions(1);
    const dedup = shop.dedup();
    expect([(await send(dedup, chargeBoth, 'k')).status, await shop.charges()]).toEqual([500, 0]);
    expect([await codeOf(await send(dedup, chargeBoth, 'k')), await shop.charges()]).toEqual(['idempotency_indeterminate', 0]);
  });
});
