import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fromPg } from '../../src/sql/pg.js';
import { gate } from '../support/gate.js';
import { bePatient } from '../support/patience.js';
import { charge, isReplay, openShop, send, type Shop, type ShopDedup } from './support/shop.js';

bePatient();

const DAY_MS = 86_400_000;

/** Expired rows of the purge under load. A million takes a minute: SAMEKEY_PURGE_ROWS=1000000. */
const ROWS = Number(process.env['SAMEKEY_PURGE_ROWS'] ?? 50_000);

/** Rows of one call of the purge. */
const LIMIT = 5_000;

/** Rows of one transaction of it. */
const BATCH = 500;

let shop: Shop;
beforeAll(async () => void (shop = await openShop()));
afterAll(() => shop.close());
beforeEach(() => shop.reset());

/** Completed rows, made by the database itself. `expiresIn` in ms; negative: they are expired. */
const fill = (prefix: string, count: number, expiresIn: number): Promise<unknown> =>
  shop.pool.query(
    `INSERT INTO idempotency_keys (scope, id_key, request_hash, status, response_code, response_headers, response_body, owner, fence, attempts, lease_until,
       effect_started, operation_ref, created_at, settled_at, result_expires_at, expires_at, revision)
     SELECT '4:acme6:charge', $1 || n, 'v1:sha256:0', 'completed', 201, '[]', '\\x7b7d', 'o', 1, 1, now(), false, 'r', now(), now(), e, e, 1
     FROM generate_series(1, $2::int) n, LATERAL (SELECT now() + $3::float8 * interval '1 millisecond' AS e) expiry`,
    [prefix, count, expiresIn],
  );

const rows = async (): Promise<number> => Number((await shop.pool.query('SELECT count(*) AS n FROM idempotency_keys')).rows[0].n);

/** A server whose purge stands still at the end of its first batch, with all locks of that, until it is let go on. */
const slowToPurge = (): { readonly dedup: ShopDedup; readonly inBatch: Promise<void>; readonly goOn: () => void } => {
  const database = fromPg(shop.pool);
  const [inBatch, end] = [gate(), gate()];
  const transaction: typeof database.transaction = (work, options) =>
    database.transaction(async (on, tx) => {
      const result = await work(on, tx);
      inBatch.open();
      await end.opened;
      return result;
    }, options);
  return { dedup: shop.dedup({}, { database: { ...database, transaction } }), inBatch: inBatch.opened, goOn: end.open };
};

const lockWaits = async (): Promise<number> => Number((await shop.pool.query('SELECT count(*) AS n FROM pg_locks WHERE NOT granted')).rows[0].n);

describe.each(['tx', 'single-tx', 'lease'] as const)('55: while a batch of a purge is open, %s', mode => {
  it('claims, replays and takeovers of other keys are answered, and wait for nothing', async () => {
    const dedup = shop.dedup({ mode });
    await send(dedup, charge, 'live');
    await send(dedup, async () => new Response(null, { status: 503 }), 'failed');
    await fill('expired-', 100, -DAY_MS);
    const { dedup: purging, inBatch, goOn } = slowToPurge();
    const purge = purging.purge();
    await inBatch;
    expect(isReplay(await send(dedup, charge, 'live'))).toBe(true);
    for (const key of ['failed', 'new-1', 'new-2']) expect([(await send(dedup, charge, key)).status, await lockWaits()]).toEqual([201, 0]);
    goOn();
    expect([await purge, await rows()]).toMatchObject([{ deleted: 100, more: false }, 4]);
  });

  it('a claim of a key that it deletes runs once, when the batch is over', async () => {
    const dedup = shop.dedup({ mode, lockTimeout: 20_000 });
    await fill('expired-', 1, -DAY_MS);
    const { dedup: purging, inBatch, goOn } = slowToPurge();
    const purge = purging.purge();
    await inBatch;
    const responses = Promise.all(Array.from({ length: 10 }, () => send(dedup, charge, 'expired-1')));
    await expect.poll(lockWaits).toBeGreaterThan(0);
    goOn();
    await purge;
    const statuses = (await responses).map(response => (isReplay(response) ? 'replay' : response.status));
    expect([statuses.filter(status => status === 201).length, statuses.filter(status => ![201, 409, 'replay'].includes(status)), await shop.charges()]).toEqual([1, [], 1]);
  });
});

describe(`55: a purge of ${ROWS} expired rows`, () => {
  it.each(['tx', 'lease'] as const)('goes on beside claims and takes nothing else away; %s', { timeout: 600_000 }, async mode => {
    const dedup = shop.dedup({ mode });
    await fill('expired-', ROWS, -DAY_MS);
    await fill('live-', 1_000, DAY_MS);
    let [deleted, isOver, claims] = [0, false, 0];
    const purge = async (): Promise<void> => {
      for (let more = true; more; ) {
        const report = await dedup.purge({ limit: LIMIT });
        deleted += report.deleted;
        ({ more } = report);
      }
      isOver = true;
    };
    const client = async (): Promise<void> => {
      while (!isOver) expect((await send(dedup, charge, `claim-${(claims += 1)}`)).status).toBe(201);
    };
    await Promise.all([purge(), client(), client()]);
    expect([deleted, claims > 2, await shop.charges(), await rows()]).toEqual([ROWS, true, claims, 1_000 + claims]);
  });

  it.each([true, false])('costs what is due, and not what is stored: no statement of it reads much more; with statistics: %s', async known => {
    // Below that PostgreSQL reads the table, because it is small.
    await fill('live-', 200_000, DAY_MS);
    await fill('expired-', BATCH, -DAY_MS);
    // Those of the empty table are worse than none.
    await shop.pool.query(known ? 'ANALYZE idempotency_keys' : `DELETE FROM pg_statistic WHERE starelid = 'idempotency_keys'::regclass`);
    const database = fromPg(shop.pool);
    const plans: string[] = [];
    const explaining: typeof database = {
      ...database,
      transaction: (work, options) =>
        database.transaction((on, tx) => work({
          async query(text, values) {
            plans.push((await on.query(`EXPLAIN ANALYZE ${text}`, values)).rows.map(row => String(row['QUERY PLAN'])).join('\n'));
            return on.query(text, values);
          },
        }, tx), options),
    };
    expect(await shop.dedup({}, { database: explaining }).purge()).toMatchObject({ deleted: BATCH });
    expect(plans.length).toBeGreaterThan(2);
    const counts = plans.flatMap(plan => [...plan.matchAll(/actual time=\S+ rows=(\d+)|Rows Removed by Filter: (\d+)/g)]).map(([, read, removed]) => Number(read ?? removed));
    // Entries of rows that are dead, but not yet swept up, are read too.
    expect(counts.filter(count => count > 10 * BATCH)).toEqual([]);
  });
});
