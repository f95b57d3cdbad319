import { beforeEach, describe, expect, test } from 'vitest';
import { createDedup, type Dedup, type Handler } from '../../../src/server/index.js';
import { asNumber } from '../../../src/sql/index.js';
import { openForAll } from '../../support/open-for-all.js';
import { ORDERS_DATABASES, ordersOf, URL_OF_ORDERS, type Orders, type OrdersDatabase } from './orders.js';

/** What an operation under a key leaves: the row with its version, and the log that it may write once only. */
interface Left {
  readonly status: unknown;
  readonly version: number;
  readonly logged: number;
}

describe.each(ORDERS_DATABASES)('a conditional write under an idempotency key, on %s', (_name, open) => {
  let opened: OrdersDatabase;
  let dedup: Dedup;
  let orders: Orders;
  openForAll(async () => {
    opened = await open();
    await opened.database.query('CREATE TABLE log (entry varchar(64))');
    dedup = createDedup({ store: await opened.openStore(), scope: () => 'acct_1', on: { failed: () => {} } });
    orders = ordersOf(opened);
    return opened.close;
  });
  beforeEach(async () => {
    for (const table of ['orders', 'log', 'idempotency_keys']) await opened.database.query(`DELETE FROM ${table}`);
  });

  /** Sets a state and appends to a log: the second is what makes a key necessary. */
  const pay: Handler<Response> = async (request, context) => {
    const { status } = (await request.json()) as { status: string };
    const sql = await opened.transactionOf(context);
    await sql.query(`INSERT INTO log VALUES ('paid')`);
    return orders.within(sql).patch(request, '1', { status });
  };

  const send = (headers: Record<string, string>, status = 'paid'): Promise<Response> => {
    const request = new Request(`${URL_OF_ORDERS}1`, { method: 'PATCH', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ status }) });
    return dedup.handle(request, pay, { name: 'pay' });
  };

  const seed = async (): Promise<string> => (await orders.put(new Request(URL_OF_ORDERS, { method: 'PUT' }), '1', { status: 'new', price: 5 })).headers.get('etag') ?? '';

  const left = async (): Promise<Left> => {
    const [row] = (await opened.database.query('SELECT status, version FROM orders')).rows;
    const [log] = (await opened.database.query('SELECT count(*) AS n FROM log')).rows;
    return { status: row?.['status'], version: asNumber(row?.['version']), logged: asNumber(log?.['n']) };
  };

  test('the repeat after a lost answer is a replay, not a 412: with a key nobody has to compare', async () => {
    const etag = await seed();
    const lost = await send({ 'idempotency-key': 'k', 'if-match': etag });
    const repeat = await send({ 'idempotency-key': 'k', 'if-match': etag });
    expect([lost.status, repeat.status, repeat.headers.get('idempotency-status')]).toEqual([204, 204, 'replayed']);
    expect(repeat.headers.get('etag')).toBe(lost.headers.get('etag'));
    expect(await left()).toEqual({ status: 'paid', version: Number(etag.slice(1, -1)) + 1, logged: 1 });
  });

  test('a stale write is refused, all that its handler did is undone, and the refusal is what its key is answered with', async () => {
    const etag = await seed();
    await send({ 'idempotency-key': 'k1', 'if-match': etag });
    const before = await left();
    const stale = await send({ 'idempotency-key': 'k2', 'if-match': etag }, 'cancelled');
    const repeat = await send({ 'idempotency-key': 'k2', 'if-match': etag }, 'cancelled');
    expect([stale.status, repeat.status, repeat.headers.get('idempotency-status')]).toEqual([412, 412, 'replayed']);
    expect(await left()).toEqual(before);
  });

  test('of writers with different keys and one If-Match exactly one wins, and the log says so', async () => {
    const etag = await seed();
    const answers = await Promise.all(Array.from({ length: 10 }, (_, writer) => send({ 'idempotency-key': `k${writer}`, 'if-match': etag })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, ...Array.from({ length: 9 }, () => 412)]);
    expect(await left()).toEqual({ status: 'paid', version: Number(etag.slice(1, -1)) + 1, logged: 1 });
  });

  test('of creators with different keys and one id one creates, and nobody fails', async () => {
    const make: Handler<Response> = async (request, context) => orders.within(await opened.transactionOf(context)).put(request, '1', { status: 'new', price: 5 });
    const create = (writer: number): Promise<Response> =>
      dedup.handle(new Request(`${URL_OF_ORDERS}1`, { method: 'POST', headers: { 'idempotency-key': `c${writer}` } }), make, { name: 'make' });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, writer) => create(writer)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 7 }, () => 204)]);
  });
});
