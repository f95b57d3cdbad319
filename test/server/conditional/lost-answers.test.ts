import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createClient, type Client } from '../../../src/client.js';
import { memoryKeyStore } from '../../../src/keystore/memory.js';
import { naturalKey } from '../../../src/key.js';
import type { ClientOptions } from '../../../src/options.js';
import { asNumber } from '../../../src/sql/index.js';
import { openForAll } from '../../support/open-for-all.js';
import { networkError } from '../../support/transport.js';
import { ORDERS_DATABASES, ordersOf, serveOrders, URL_OF_ORDERS, type OrdersDatabase } from './orders.js';

/** The network of a client: what it sends arrives, and the first answer to a write is lost on the way back. */
const losingOneAnswer = (serve: (request: Request) => Promise<Response>, before: () => Promise<void> = async () => {}) => {
  const statuses: number[] = [];
  const fetch = async (request: Request): Promise<Response> => {
    const isRepeat = statuses.length > 0;
    if (isRepeat && request.method !== 'GET') await before();
    const answer = await serve(request);
    if (request.method !== 'GET') statuses.push(answer.status);
    if (!isRepeat && request.method !== 'GET') throw networkError();
    return answer;
  };
  return { fetch, statuses };
};

const openClient = (fetch: ClientOptions['fetch'], options: ClientOptions = {}): Client => {
  const api = createClient({ prefix: URL_OF_ORDERS, keystore: memoryKeyStore(), scope: 'shop', retry: { delay: () => 0 }, ...(fetch && { fetch }), ...options });
  onTestFinished(() => api.close());
  return api;
};

const codeOf = (promise: PromiseLike<unknown>): Promise<unknown> => Promise.resolve(promise).then(() => 'no error', (error: { code?: unknown }) => error.code);

describe.each(ORDERS_DATABASES)('a lost answer and its repeat, on %s', (_name, open) => {
  let opened: OrdersDatabase;
  openForAll(async () => {
    opened = await open();
    return opened.close;
  });
  beforeEach(() => opened.database.query('DELETE FROM orders'));

  const rows = async (): Promise<readonly (readonly unknown[])[]> =>
    (await opened.database.query('SELECT status, version FROM orders')).rows.map(({ status, version }) => [status, asNumber(version)]);

  const seed = async (status = 'new'): Promise<{ readonly etag: string; readonly version: number }> => {
    const answer = await ordersOf(opened).put(new Request(URL_OF_ORDERS, { method: 'PUT' }), '1', { status, price: 5 });
    const etag = answer.headers.get('etag') ?? '';
    return { etag, version: Number(etag.slice(1, -1)) };
  };

  test('PUT to an id that the client derived: one row, one version', async () => {
    const { fetch, statuses } = losingOneAnswer(serveOrders(ordersOf(opened)));
    const id = naturalKey('https://shop.test', 'order', 'cart 42');
    const answer = await openClient(fetch).put(id, { operation: 'order:42', json: { status: 'new', price: 5 } });
    expect(statuses).toEqual([201, 204]);
    expect(await rows()).toEqual([['new', Number(answer.headers.get('etag')?.slice(1, -1))]]);
  });

  test('PUT with If-Match: the repeat is refused, nothing is applied twice, and the client finds out by comparing', async () => {
    const { etag, version } = await seed();
    const { fetch, statuses } = losingOneAnswer(serveOrders(ordersOf(opened)));
    const wanted = { status: 'paid', price: 5 };
    const asked: (number | undefined)[] = [];
    const api: Client = openClient(fetch, {
      onInDoubt: async (_operation, response) => {
        asked.push(response?.status);
        const { status } = await api.get('1').json<{ status: string }>();
        return status === wanted.status ? 'applied' : 'unknown';
      },
    });
    await codeOf(api.put('1', { ifMatch: etag, operation: 'order:1:pay', json: wanted }));
    expect([statuses, asked]).toEqual([[204, 412], [412]]);
    expect(await api.operations.get('order:1:pay')).toMatchObject({ state: 'succeeded' });
    expect(await rows()).toEqual([['paid', version + 1]]);
  });

  test('PUT with If-Match whose row somebody else has changed since: still refused, and in doubt where nobody compares', async () => {
    const { etag, version } = await seed();
    const { fetch, statuses } = losingOneAnswer(serveOrders(ordersOf(opened)), async () => void (await seed('shipped')));
    const api = openClient(fetch);
    expect(await codeOf(api.put('1', { ifMatch: etag, operation: 'order:1:pay', json: { status: 'paid', price: 5 } }))).toBe('IN_DOUBT');
    expect(statuses).toEqual([204, 412]);
    expect(await rows()).toEqual([['shipped', version + 2]]);
  });

  test('DELETE with If-Match: gone is what was asked for', async () => {
    const { etag } = await seed();
    const { fetch, statuses } = losingOneAnswer(serveOrders(ordersOf(opened)));
    expect((await openClient(fetch).delete('1', { ifMatch: etag })).status).toBe(204);
    expect([statuses, await rows()]).toEqual([[204, 204], []]);
  });
});
