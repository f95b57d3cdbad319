import type { PoolConnection } from 'mysql2/promise';
import { beforeEach, describe, expect, it } from 'vitest';
import { newKey } from '../../src/key.js';
import { createDedup } from '../../src/server/index.js';
import { migrate } from '../../src/server/migrate.js';
import { mysqlDedupStore, type MysqlDedupStoreOptions } from '../../src/server/stores/mysql.js';
import { claimOf, completed, DAY, HOUR, win } from '../../src/testing/dedup/subject.js';
import { gate } from '../support/gate.js';
import { openForAll } from '../support/open-for-all.js';
import { bePatient } from '../support/patience.js';
import { requestOf } from './support/endpoint.js';
import { freshMysql, type MysqlDatabase } from './support/mysql.js';
import { spiedDatabase, type Sent } from './support/spied-database.js';
import { hold, openShop } from './transactions/shop.js';

bePatient();

let db: MysqlDatabase;
openForAll(async () => {
  db = await freshMysql();
  return db.drop;
});
beforeEach(() => db.clear());

const PAST = 'UTC_TIMESTAMP(3) - INTERVAL 1 HOUR';
const FUTURE = 'UTC_TIMESTAMP(3) + INTERVAL 1 DAY';

interface Filling {
  readonly status?: string;
  /** SQL. */
  readonly expires?: string;
  /** SQL. */
  readonly resultExpires?: string;
}

/** Rows as a run leaves them. */
const fill = (count: number, prefix: string, { status = 'completed', expires = FUTURE, resultExpires = expires }: Filling = {}): Promise<unknown> =>
  db.pool.query(`INSERT INTO idempotency_keys (scope, id_key, request_hash, status, response_code, response_headers, response_body, owner, fence, attempts, lease_until,
      effect_started, operation_ref, created_at, settled_at, result_expires_at, expires_at, revision)
    SELECT '4:acme6:charge', CONCAT('${prefix}-', seq), 'v1:sha256:aa', '${status}', 201, '[]', 'body', 'o', 1, 1, '1970-01-01',
      FALSE, 'ref', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), ${resultExpires}, ${expires}, 1 FROM seq_1_to_${count}`);

describe('what the store asks of a large table', () => {
  const sent = new Map<string, Sent>();
  const storeOf = (options: MysqlDedupStoreOptions) => mysqlDedupStore(spiedDatabase(db.database, statement => void sent.set(statement.text, statement)), options);

  interface Step {
    readonly table: string | null;
    readonly type: string | null;
    readonly key: string | null;
    readonly rows: number | null;
    readonly Extra: string;
  }
  const planOf = async ({ text, values }: Sent): Promise<Step[]> => (await db.pool.query<never[]>(`EXPLAIN ${text}`, [...values]))[0] as unknown as Step[];

  /** Steps that read more than they need: whole tables or indexes. */
  const wasteOf = async (statement: Sent, most: number): Promise<unknown[]> => {
    const isFine = ({ table, type, key, rows }: Step): boolean => table === null || table === 'due' || (['const', 'eq_ref', 'ref', 'range'].includes(type ?? '') && key !== null && Number(rows) <= most);
    return (await planOf(statement)).filter(step => !isFine(step)).map(step => [statement.text, step]);
  };

  const allWaste = async (most: number): Promise<unknown[]> => (await Promise.all(plannable().map(statement => wasteOf(statement, most)))).flat();

  const plannable = (): Sent[] => [...sent.values()].filter(({ text }) => /^(SELECT|UPDATE|DELETE)/.test(text));

  beforeEach(async () => {
    sent.clear();
    await fill(20_000, 'live');
    await fill(200, 'dead', { expires: PAST });
    await fill(100, 'bodiless', { resultExpires: PAST });
    await fill(5, 'doubt', { status: 'indeterminate', expires: PAST });
    await db.pool.query('ANALYZE TABLE idempotency_keys');
  });

  it('claims, replays, refusals, renewals and ends read the one row that they are about', async () => {
    const [tx, lease] = [storeOf({}), storeOf({ mode: 'lease' })];
    const shop = openShop({ store: tx, insert: async () => {}, charges: async () => 0, pass: async () => {} });
    const { first, goOn } = await hold(shop, async (_request, context) => (await context.effectStarted(), new Response('done')));
    await shop.send(shop.charge);
    goOn();
    await first;
    for (const key of ['k', 'live-7', 'dead-7', 'doubt-3', 'new']) await shop.send(async () => new Response('done'), { key });
    await shop.dedup.resolve({ scope: 'acme', name: 'charge', key: 'doubt-3' }, 'not-applied');
    const held = await win(lease, 'a');
    await lease.renew(held, HOUR, true);
    await lease.settle(held, completed());
    await lease.settle(held, completed());
    await lease.claim(claimOf('b'));
    expect(plannable().length).toBeGreaterThanOrEqual(8);
    expect(await allWaste(1)).toEqual([]);
  });

  it('a purge reads what is due, and no more', async () => {
    expect(await storeOf({}).purge({ dropIndeterminateAfter: HOUR })).toMatchObject({ deleted: 200, bodiesDropped: 100, indeterminate: 5, more: false });
    expect([plannable().length > 4, await allWaste(1_000)]).toEqual([true, []]);
    // What is done is not looked at again, once the database has cleared it away too.
    sent.clear();
    expect(await storeOf({}).purge()).toMatchObject({ deleted: 0, bodiesDropped: 0 });
    await expect.poll(() => allWaste(10)).toEqual([]);
  });
});

describe('a purge', () => {
  it('55: of many rows goes on in batches while claims are answered, and leaves none', async () => {
    await fill(5_000, 'dead', { expires: PAST });
    await fill(500, 'live');
    const shop = openShop({ store: mysqlDedupStore(db.database), insert: async () => {}, charges: async () => 0, pass: async () => {} });
    let [deleted, answered, more] = [0, 0, true];
    while (more) {
      const [report, ...answers] = await Promise.all([
        shop.dedup.purge({ limit: 1_000 }),
        ...Array.from({ length: 20 }, () => shop.send(async () => new Response('done', { status: 201 }), { key: newKey() })),
      ]);
      ({ more } = report);
      deleted += report.deleted;
      answered += answers.filter(({ status }) => status === 201).length;
    }
    expect([deleted, answered % 20, await db.count('idempotency_keys')]).toEqual([5_000, 0, 500 + answered]);
  });

  it('55: keeps nobody waiting, neither for the rows that it has nor for what is between them', async () => {
    await fill(50, 'dead', { expires: PAST });
    const [locked, end] = [gate(), gate()];
    const purging = mysqlDedupStore(spiedDatabase<PoolConnection>(db.database, async ({ text }) => {
      if (!text.startsWith('DELETE')) return;
      locked.open();
      await end.opened;
    })).purge();
    await locked.opened;
    const dedup = createDedup({ store: mysqlDedupStore(db.database), scope: () => 'acme' });
    // Between the rows of the batch, beside them, and one of them: it is not free yet.
    const keys = ['dead', 'dead-0', 'dead-10-new', 'dead-51', 'a', 'z', 'dead-7'];
    const answers = await Promise.all(keys.map(key => dedup.handle(requestOf({ key, body: null }), async () => new Response('done', { status: 201 }), { name: 'charge' })));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201, 409]);
    end.open();
    expect((await purging).deleted).toBe(50);
    expect((await dedup.handle(requestOf({ key: 'dead-7' }), async () => new Response('done', { status: 201 }), { name: 'charge' })).status).toBe(201);
  });

  it('by several at once deletes each row once', async () => {
    await fill(1_000, 'dead', { expires: PAST });
    const reports = await Promise.all(Array.from({ length: 4 }, () => mysqlDedupStore(db.database).purge()));
    expect([reports.reduce((sum, { deleted }) => sum + deleted, 0), await db.count('idempotency_keys')]).toEqual([1_000, 0]);
  });

  it('goes on beside a run whose key is due, and leaves it alone', async () => {
    const shop = openShop({ store: mysqlDedupStore(db.database), insert: async () => {}, charges: async () => 0, pass: db.pass });
    const { first, goOn } = await hold(shop, async () => new Response('done', { status: 201 }));
    await fill(10, 'dead', { expires: PAST });
    await shop.pass(2 * DAY);
    expect((await shop.dedup.purge()).deleted).toBe(10);
    goOn();
    expect((await first).status).toBe(201);
  });
});

describe('migrate', () => {
  it('makes what is missing, may be called again, and by many at once', async () => {
    const table = 'second_keys';
    await Promise.all(Array.from({ length: 8 }, () => migrate(db.database, 'mysql', { table })));
    await migrate(db.database, 'mysql', { table });
    const store = mysqlDedupStore(db.database, { table, mode: 'lease' });
    expect((await store.claim(claimOf('a'))).kind).toBe('won');
    await migrate(db.database, 'mysql', { table });
    expect((await store.claim(claimOf('b'))).kind).toBe('in-progress');
  });
});
