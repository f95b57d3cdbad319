import { createPool, type PoolConnection } from 'mysql2/promise';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Handler, HandlerContext } from '../../src/server/index.js';
import { mysqlDedupStore, type MysqlDedupStoreOptions } from '../../src/server/stores/mysql.js';
import { fromMysql2, type SqlDatabase } from '../../src/sql/index.js';
import { win } from '../../src/testing/dedup/subject.js';
import { gate } from '../support/gate.js';
import { openForAll } from '../support/open-for-all.js';
import { bePatient } from '../support/patience.js';
import { freshMysql, type MysqlDatabase } from './support/mysql.js';
import { spiedDatabase } from './support/spied-database.js';
import { openShop, type Shop } from './transactions/shop.js';

bePatient();

type Tx = PoolConnection;
type Charge = Handler<Response, Tx>;

let db: MysqlDatabase;
openForAll(async () => {
  db = await freshMysql();
  await db.pool.query('CREATE TABLE accounts (id varchar(10) PRIMARY KEY, balance int) ENGINE = InnoDB');
  return db.drop;
});
beforeEach(async () => {
  await db.clear();
  await db.pool.query("REPLACE INTO accounts VALUES ('x', 0), ('y', 0)");
});

const shopOf = (options: MysqlDedupStoreOptions, database: SqlDatabase<Tx> = db.database): Shop<Tx> =>
  openShop({
    store: mysqlDedupStore(database, options),
    insert: (tx, label, attempt) => tx.query('INSERT INTO charges (label, attempt) VALUES (?, ?)', [label, attempt]),
    charges: () => db.count('charges'),
    pass: db.pass,
  });

const raise = (tx: Tx, id: string): Promise<unknown> => tx.query('UPDATE accounts SET balance = balance + 1 WHERE id = ?', [id]);

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

/** Two handlers, each of which has the row that the other one wants next. `late`: what becomes of the error of the loser. */
const deadlock = (shop: Shop<Tx>, late: (error: unknown, context: HandlerContext<Tx>) => Promise<unknown> = Promise.reject.bind(Promise)): Charge => {
  const meet = meeting();
  return async (request, context) => {
    const tx = await context.transaction();
    const [mine, yours] = context.key === 'a' ? ['x', 'y'] as const : ['y', 'x'] as const;
    await raise(tx, mine);
    await meet();
    await raise(tx, yours).catch((error: unknown) => late(error, context));
    return shop.charge(request, context);
  };
};

const sendBoth = (shop: Shop<Tx>, handler: Charge): Promise<Response[]> => Promise.all(['a', 'b'].map(key => shop.send(handler, { key })));

const statuses = (responses: readonly Response[]): number[] => responses.map(({ status }) => status).sort();

const balances = async (): Promise<unknown> => (await db.pool.query('SELECT balance FROM accounts ORDER BY id'))[0];

describe.each(['tx', 'lease'] as const)('a deadlock of two handlers, %s', mode => {
  it('is an error to neither client: one runs again, and each has one effect', async () => {
    const shop = shopOf({ mode });
    expect(statuses(await sendBoth(shop, deadlock(shop)))).toEqual([201, 201]);
    expect([await shop.charges(), await balances()]).toEqual([2, [{ balance: 2 }, { balance: 2 }]]);
  });

  it('C75: whose error the loser keeps to itself is no success: what came after it was committed by itself, so the key is in doubt', async () => {
    const shop = shopOf({ mode });
    const responses = await sendBoth(shop, deadlock(shop, async () => {}));
    expect([responses.filter(({ status }) => status === 201).length, responses.filter(({ status }) => status >= 400).length]).toEqual([1, 1]);
    const loser = responses[0]?.status === 201 ? 'b' : 'a';
    const again = await shop.send(shop.charge, { key: loser });
    expect([again.status, await again.json()]).toMatchObject([409, { code: 'idempotency_indeterminate', safe_new_key: false }]);
    // Both charges are there: one of them in no transaction, which is why nobody may run it again.
    expect(await shop.charges()).toBe(2);
  });
});

describe.each(['tx', 'lease'] as const)('what else ends a transaction under its handler, %s', mode => {
  const commitHalf = async (shop: Shop<Tx>, context: HandlerContext<Tx>): Promise<void> => {
    await shop.insert(context);
    await (await context.transaction()).query('CREATE TABLE IF NOT EXISTS implicit (id int)');
  };

  const expectDoubt = async (shop: Shop<Tx>): Promise<void> => {
    expect(await (await shop.send(shop.charge)).json()).toMatchObject({ code: 'idempotency_indeterminate' });
    expect(await shop.charges()).toBe(1);
  };

  it('DDL commits it: the key is in doubt, and the failure says why', async () => {
    const shop = shopOf({ mode });
    const first = await shop.send(async (_request, context) => (await commitHalf(shop, context), new Response('done', { status: 201 })));
    expect([first.status, shop.failures]).toMatchObject([500, [{ code: 'TRANSACTION_LOST', message: expect.stringContaining('keep DDL out of it') }]]);
    await expectDoubt(shop);
  });

  it('no refusal is stored over what was committed so, nor is the key freed by a failure', async () => {
    for (const end of [async () => new Response('no', { status: 402 }), () => Promise.reject(new TypeError('boom'))]) {
      await db.clear();
      const shop = shopOf({ mode });
      await shop.send(async (_request, context) => (await commitHalf(shop, context), end()));
      await expectDoubt(shop);
    }
  });
});

it('a wait for a lock that takes too long fails the run, all of it is rolled back, and the same request runs again', async () => {
  const shop = shopOf({});
  const other = await db.pool.getConnection();
  await other.query('START TRANSACTION');
  await raise(other, 'x');
  const impatient = await shop.send(async (request, context) => {
    await shop.insert(context);
    await (await context.transaction()).query("SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE accounts SET balance = 5 WHERE id = 'x'");
    return shop.charge(request, context);
  });
  expect([impatient.status, shop.failures, await shop.charges()]).toMatchObject([500, [{ code: 'ER_LOCK_WAIT_TIMEOUT' }], 0]);
  await other.query('ROLLBACK');
  other.release();
  expect([(await shop.send(shop.charge)).status, await shop.charges()]).toEqual([201, 1]);
});

it('a snapshot that is too old to be written on, as MariaDB 11.6 has it by itself, lets the run begin again', async () => {
  const pool = createPool({ ...db.place, connectionLimit: 2 });
  pool.on('connection', connection => connection.query('SET SESSION innodb_snapshot_isolation = ON'));
  const shop = shopOf({}, fromMysql2(pool));
  let runs = 0;
  const answer = await shop.send(async (request, context) => {
    const tx = await context.transaction();
    await tx.query('SELECT * FROM accounts');
    if ((runs += 1) === 1) await db.pool.query("UPDATE accounts SET balance = 10 WHERE id = 'x'");
    await raise(tx, 'x');
    return shop.charge(request, context);
  });
  expect([answer.status, runs, await shop.charges(), await balances()]).toEqual([201, 2, 1, [{ balance: 11 }, { balance: 0 }]]);
  await pool.end();
});

describe('serializable handlers, tx', () => {
  it('that read what the other one writes run one after the other, and are an error to neither client', async () => {
    const shop = shopOf({ isolation: 'serializable' });
    const meet = meeting();
    const responses = await sendBoth(shop, async (request, context) => {
      const tx = await context.transaction();
      await tx.query('SELECT sum(balance) FROM accounts');
      await meet();
      await raise(tx, context.key === 'a' ? 'x' : 'y');
      return shop.charge(request, context);
    });
    expect([statuses(responses), await shop.charges(), await balances()]).toEqual([[201, 201], 2, [{ balance: 1 }, { balance: 1 }]]);
  });

  it('cannot announce effects elsewhere, and hear that at once', async () => {
    const shop = shopOf({ isolation: 'serializable' });
    const first = await shop.send(async (_request, context) => (await context.effectStarted(), new Response('never')));
    expect([first.status, shop.failures]).toMatchObject([500, [{ code: 'NOT_POSSIBLE', message: expect.stringContaining("mode: 'lease'") }]]);
    expect((await shop.send(shop.charge)).status).toBe(201);
  });
});

describe('a statement by itself that the database gives up for another one', () => {
  it('is sent again, whichever it is: inserts of a key that was just deleted lock each other out', async () => {
    let givenUp = 0;
    const seen = new Set<string>();
    const database = spiedDatabase(db.database, ({ text }) => {
      const verb = text.trimStart().slice(0, 40);
      if (seen.has(verb)) return;
      seen.add(verb);
      givenUp += 1;
      throw Object.assign(new Error('Deadlock found when trying to get lock; try restarting transaction'), { code: 'ER_LOCK_DEADLOCK', sqlState: '40001' });
    });
    const store = mysqlDedupStore(database, { mode: 'lease' });
    const hold = await win(store, 'a');
    expect(await store.renew(hold, 1_000, false)).toBe(true);
    expect(await store.settle(hold, { to: 'indeterminate', reason: 'nobody knows' })).toBe(true);
    expect(await store.resolve(hold, { to: 'retryable', keyRetention: 1_000 })).toBe(true);
    expect(givenUp).toBeGreaterThanOrEqual(3);
    await db.clear();
  });
});
