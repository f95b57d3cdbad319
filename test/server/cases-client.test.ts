import { describe, expect, it } from 'vitest';
import { createClient, operationOf, type Client, type ClientOptions } from '../../src/index.js';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import { ietf } from '../../src/profiles/ietf.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { systemClock } from '../../src/clock.js';
import { createDedup, type DedupOptions } from '../../src/server/index.js';
import { virtualClock } from '../support/virtual-clock.js';

const ORIGIN = 'https://shop.example';

/** What becomes of an answer on its way to the client. */
type Way = (response: Response, nth: number) => Response | Promise<Response>;

interface Shop {
  readonly api: Client;
  /** Another page or process on the same key store, a minute later; the first one is gone. */
  reopen(): Client;
  readonly runs: number;
  /** Content types and bodies, as they were sent. */
  readonly sent: readonly string[];
  /** The same request under the same key as ever, past the client. */
  sendUnder(key: string, body: BodyInit, type?: string): Promise<Response>;
}

/** Client and engine with nothing between them but `way`. */
const shopOf = ({ way = response => response, work = run => Response.json({ id: `ch_${run}` }, { status: 201 }), ...options }: {
  readonly way?: Way;
  readonly work?: (run: number) => Response;
} & Partial<DedupOptions> & Pick<ClientOptions, 'profile'> = {}): Shop => {
  const dedup = createDedup({ store: memoryDedupStore(), clock: systemClock, scope: () => 'acme', on: { failed: () => {} }, ...options });
  const backing = memoryBacking();
  const clock = virtualClock();
  const sent: string[] = [];
  let runs = 0;
  const handle = (request: Request): Promise<Response> => dedup.handle(request, () => work((runs += 1)), { name: 'charge' });
  const fetch = async (request: Request): Promise<Response> => {
    sent.push(`${request.headers.get('content-type')}\n${await request.clone().text()}`);
    return way(await handle(request), sent.length);
  };
  const open = (): Client =>
    createClient({ prefix: ORIGIN, keystore: memoryKeyStore({ backing }), scope: 'acct_1', clock, random: () => 0.5, fetch, profile: options.profile ?? ietf, retry: { limit: 2 } });
  return {
    api: open(),
    reopen() {
      backing.owners.clear();
      // The next attempt is due by then.
      clock.shift(60_000);
      return open();
    },
    get runs() {
      return runs;
    },
    sent,
    sendUnder: (key, body, type) => handle(new Request(`${ORIGIN}/charges`, { method: 'POST', body, headers: { 'idempotency-key': key, ...(type !== undefined && { 'content-type': type }) } })),
  };
};

const lost = (): never => {
  throw new TypeError('fetch failed');
};

const loseFirst: Way = (response, nth) => (nth === 1 ? lost() : response);

const form = (tags: readonly string[], file = 'bytes'): FormData => {
  const data = new FormData();
  for (const tag of tags) data.append('tag', tag);
  data.append('file', new Blob([file], { type: 'image/png' }), 'cat.png');
  return data;
};

/** Two bodies, and whether they ask for the same thing. */
const PAIRS: readonly (readonly [one: BodyInit, other: BodyInit, same: boolean])[] = [
  ['{"a":1,"b":{"c":2,"d":3}}', ' { "b" : {"d":3,\n"c":2}, "a":1 } ', true],
  ['[1]', '[1.0]', true],
  ['[1]', '[1e0]', true],
  ['[0]', '[-0]', true],
  ['"\\u00e9"', '"\u00e9"', true],
  ['[1,2]', '[2,1]', false],
  ['{"a":1,"a":2}', '{"a":2}', false],
  ['9007199254740993', '9007199254740992', false],
  ['"\u00e9"', '"e\u0301"', false],
  ['"\\ud800"', '"\\ud801"', false],
  ['{"a":null}', '{}', false],
];

describe('client and engine, together', () => {
  it.each(PAIRS)('C80, C81: %j and %j are one request to both, or two to both', async (one, other, same) => {
    const shop = shopOf();
    const post = (body: BodyInit) => shop.api.post('charges', { operation: 'o', body, headers: { 'content-type': 'application/json' } });
    const key = operationOf(await post(one))?.key ?? '';
    const again = await post(other).then(() => 'same', (error: { code?: unknown }) => error.code);
    const { status } = await shop.sendUnder(key, other, 'application/json');
    expect([again, status, shop.runs]).toEqual(same ? ['same', 201, 1] : ['OPERATION_MISMATCH', 422, 1]);
  });

  it('C35: a form that was sent, and whose page is gone, is sent again with its boundary and bytes; built anew it is still the same request', async () => {
    const shop = shopOf({ way: loseFirst });
    const { api } = shop;
    // Nobody waits for the rest: the page goes away with the first attempt.
    const first = api.post('charges', { operation: 'o', body: form(['a', 'b']), retry: 0 });
    await expect(first).rejects.toMatchObject({ code: 'OPERATION_PENDING' });
    const after = shop.reopen();
    const { pending, succeeded } = await after.operations.resume();
    expect([pending.length, succeeded.map(({ name }) => name)]).toEqual([0, ['o']]);
    expect([shop.sent.length, new Set(shop.sent).size, shop.runs]).toEqual([2, 1, 1]);
    const key = (await after.operations.get('o'))?.key ?? '';
    expect((await shop.sendUnder(key, form(['a', 'b']))).headers.get('idempotent-replayed')).toBe('true');
    for (const other of [form(['b', 'a']), form(['a', 'b'], 'Bytes')]) expect((await shop.sendUnder(key, other)).status).toBe(422);
    expect(shop.runs).toBe(1);
  });

  it('C29: a gateway that puts its own page in place of the answer hides it only until it is asked again', async () => {
    const page = (): Response => new Response('<html>Bad gateway</html>', { status: 502, headers: { 'content-type': 'text/html' } });
    const shop = shopOf({ way: (response, nth) => (nth === 1 ? page() : response) });
    const response = await shop.api.post('charges', { operation: 'o', json: { amount: 1 } });
    expect([await response.json(), operationOf(response)?.replayed, shop.sent.length, shop.runs]).toEqual([{ id: 'ch_1' }, 'server', 2, 1]);
  });

  it('C85: a replay is told as such, whether it is the first answer or a stored failure, and that failure is not asked for again', async () => {
    const good = shopOf({ way: loseFirst });
    expect(operationOf(await good.api.post('charges', { operation: 'o', json: {} }))?.replayed).toBe('server');
    const bad = shopOf({ way: loseFirst, work: () => Response.json({ error: 'down' }, { status: 500 }), profile: { ...ietf, stores: 'all' } });
    const failed = bad.api.post('charges', { operation: 'o', json: {} });
    await expect(failed).rejects.toMatchObject({ code: 'IN_DOUBT', message: expect.stringContaining('stored an error under the key') });
    const { response } = (await failed.catch((error: unknown) => error)) as { response: Response };
    expect([response.status, response.headers.get('idempotent-replayed')]).toEqual([500, 'true']);
    expect([bad.sent.length, bad.runs]).toEqual([2, 1]);
  });

  it('C85: a failure that is not stored is retried, and runs again', async () => {
    const shop = shopOf({ work: run => new Response(null, { status: run === 1 ? 503 : 201 }) });
    const response = await shop.api.post('charges', { operation: 'o', json: {} });
    expect([response.status, operationOf(response)?.replayed, shop.sent.length, shop.runs]).toEqual([201, false, 2, 2]);
  });
});
