import type { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fromNodeSqlite } from '../../src/sql/index.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { manualClock } from '../support/manual-clock.js';
import { freshSqlite, type SqliteFile } from './support/sqlite.js';
import { describeStaleHandlers } from './transactions/duplicates.js';
import { describeHandlerTransactions } from './transactions/handlers.js';
import { openShop, type ShopDatabase } from './transactions/shop.js';

let file: SqliteFile;
beforeEach(async () => {
  file = await freshSqlite();
});
afterEach(() => file.close());

const shopDatabase = (database = file.database): ShopDatabase<DatabaseSync> => ({
  store: sqliteDedupStore(database),
  insert: async (tx, label, attempt) => tx.prepare('INSERT INTO charges (label, attempt) VALUES (?, ?)').run(label, attempt),
  charges: async () => Number(file.sqlite.prepare('SELECT count(*) AS n FROM charges').get()?.['n']),
  pass: file.pass,
});

describeHandlerTransactions('sqlite', shopDatabase);
describeStaleHandlers('sqlite', shopDatabase);

it.each(['COMMIT', 'ROLLBACK', 'INSERT OR ROLLBACK INTO charges (id) VALUES (1)'])('a transaction that %s has ended under its handler leaves doubt: what came after it was committed by itself', async ending => {
  file.sqlite.exec('INSERT INTO charges (id) VALUES (1)');
  for (const end of [async () => new Response('done', { status: 201 }), async () => new Response('no', { status: 402 }), () => Promise.reject(new TypeError('boom'))]) {
    file.sqlite.exec('DELETE FROM idempotency_keys');
    const shop = openShop(shopDatabase());
    await shop.send(async (_request, context) => {
      const tx = await context.transaction();
      try {
        tx.exec(ending);
      } catch {}
      await shop.insert(context);
      return end();
    });
    expect(await (await shop.send(shop.charge)).json()).toMatchObject({ code: 'idempotency_indeterminate' });
    expect(file.sqlite.isTransaction).toBe(false);
  }
});

it('an effect elsewhere can be announced before the transaction is opened; a failure after it leaves doubt', async () => {
  const { send, insert, charge, charges } = openShop(shopDatabase());
  await send(async (_request, context) => {
    await context.effectStarted();
    await insert(context);
    throw new TypeError('the network went away');
  });
  expect(await (await send(charge)).json()).toMatchObject({ code: 'idempotency_indeterminate' });
  expect(await charges()).toBe(0);
});

it('an announcement from within the transaction waits for the transaction that waits for it: it fails, and says so', async () => {
  const clock = manualClock();
  const { send, insert, charge, charges, failures } = openShop(shopDatabase(fromNodeSqlite(file.sqlite, { clock })), { clock });
  let answered = false;
  const first = send(async (_request, context) => {
    await insert(context);
    await context.effectStarted();
    return new Response('never');
  });
  void first.then(() => (answered = true));
  while (!answered) await clock.advance(1_000);
  expect([(await first).status, failures]).toMatchObject([500, [{ message: expect.stringContaining('call it before transaction()') }]]);
  expect([(await send(charge)).status, await charges()]).toEqual([201, 1]);
});
