import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { http, HttpResponse, passthrough } from 'msw';
import { describe, expect, it } from 'vitest';
import { createClient, operationOf } from '../../src/index.js';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import { createIdempotencyMock, type IdempotencyMockOptions } from '../../src/msw/index.js';
import { stripe } from '../../src/profiles/stripe.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { charge, CHARGES, kindsOf, useServer } from './support.js';

const server = useServer();

const DAY = 86_400_000;

const chargesMock = (options?: IdempotencyMockOptions) => {
  const mock = createIdempotencyMock(options);
  let id = 0;
  server.use(http.post(CHARGES, mock.idempotent(() => HttpResponse.json({ id: (id += 1) }, { status: 201, headers: { location: `/charges/${id}` } }), { name: 'charge' })));
  return mock;
};

describe('createIdempotencyMock', () => {
  it('59: executes once, replays the same bytes and headers, writes both down in order, and counts', async () => {
    const mock = chargesMock();
    const [first, second] = [await charge(), await charge()];
    expect([first.status, await first.text(), first.headers.get('idempotency-status')]).toEqual([201, '{"id":1}', 'stored']);
    expect([second.status, await second.text(), second.headers.get('idempotent-replayed'), second.headers.get('location')]).toEqual([201, '{"id":1}', 'true', '/charges/1']);
    expect(kindsOf(mock.ledger)).toEqual(['request', 'claim', 'execution', 'answer', 'request', 'replay']);
    expect(mock.ledger[0]).toMatchObject({ kind: 'request', name: 'charge', key: 'k', method: 'POST', url: CHARGES });
    expect(mock.ledger[3]).toMatchObject({ kind: 'answer', status: 201, record: 'stored' });
    expect(mock.executions('charge')).toBe(1);
    expect(mock.executions('refund')).toBe(0);
  });

  it('runs one of 50 requests at once and tells the others to wait, or the answer', async () => {
    const mock = chargesMock();
    const responses = await Promise.all(Array.from({ length: 50 }, () => charge()));
    expect(mock.executions('charge')).toBe(1);
    for (const { status } of responses) expect([201, 409]).toContain(status);
    const kinds = kindsOf(mock.ledger);
    expect(kinds.indexOf('claim')).toBeGreaterThan(-1);
    expect(kinds.indexOf('conflict') === -1 || kinds.indexOf('conflict') > kinds.indexOf('claim')).toBe(true);
  });

  it('stamps its answers, so that answers of a real server can be told apart', async () => {
    chargesMock();
    for (const response of [await charge(), await charge(), await charge({ key: '' })]) expect(response.headers.get('samekey-mock')).toBe('charge');
  });

  it('C79: answers 422 to another body while the first runs, and 409 with Retry-After to the same', async () => {
    const mock = createIdempotencyMock();
    let finish = (): void => {};
    const finished = new Promise<void>(resolve => (finish = resolve));
    server.use(http.post(CHARGES, mock.idempotent(async () => finished.then(() => HttpResponse.json({})), { name: 'charge' })));
    const first = charge();
    await expect.poll(() => mock.executions('charge')).toBe(1);
    const other = await charge({ body: '{"amount":1}' });
    const same = await charge();
    expect([other.status, other.headers.has('retry-after'), same.status, same.headers.get('retry-after')]).toEqual([422, false, 409, '5']);
    expect(mock.ledger.filter(({ kind }) => kind === 'conflict')).toMatchObject([{ code: 'idempotency_key_reused' }, { code: 'idempotency_in_progress' }]);
    finish();
    expect((await first).status).toBe(200);
  });

  it('refuses a missing and a malformed key, and executes nothing', async () => {
    const mock = chargesMock();
    expect([(await charge({ key: '' })).status, (await charge({ key: 'a, b' })).status]).toEqual([400, 400]);
    expect(mock.executions()).toBe(0);
    expect(kindsOf(mock.ledger)).toEqual(['request', 'refusal', 'request', 'refusal']);
  });

  it('59, C72: time that is moved forgets a key after its last millisecond, without a purge', async () => {
    const clock = manualClock();
    const mock = chargesMock({ clock });
    await charge();
    await clock.advance(DAY - 1);
    expect((await charge()).headers.get('idempotent-replayed')).toBe('true');
    await clock.advance(2);
    expect((await charge({ body: '{"amount":1}' })).headers.get('idempotency-status')).toBe('stored');
    expect(mock.executions('charge')).toBe(2);
    await clock.advance(DAY + 1);
    expect((await mock.purge()).deleted).toBe(1);
  });

  it('C87: replays binary and odd text byte by byte', async () => {
    const mock = createIdempotencyMock();
    const bodies = [new Uint8Array([0, 255, 128]), '{"z":1, "a":1.0,"a":2}', 'x\0y', ''];
    server.use(http.post(CHARGES, mock.idempotent(async ({ request }) => new HttpResponse(bodies[Number(await request.text())] as BodyInit, { status: 201 }), { name: 'charge' })));
    for (let index = 0; index < bodies.length; index += 1) {
      const sent = { key: `k${index}`, body: String(index) };
      const [first, second] = [await (await charge(sent)).bytes(), await (await charge(sent)).bytes()];
      expect(second).toEqual(first);
    }
    expect(mock.executions()).toBe(bodies.length);
  });

  it('C88: replays 204 without a body and without a failure', async () => {
    const mock = createIdempotencyMock();
    server.use(http.post(CHARGES, mock.idempotent(() => new HttpResponse(null, { status: 204 }), { name: 'charge' })));
    await charge();
    const replay = await charge();
    expect([replay.status, await replay.text(), replay.headers.get('idempotent-replayed')]).toEqual([204, '', 'true']);
  });

  it('C86: gives a cookie to the first caller only', async () => {
    const mock = createIdempotencyMock();
    server.use(http.post(CHARGES, mock.idempotent(() => HttpResponse.json({}, { headers: { 'set-cookie': 'session=1' } }), { name: 'charge' })));
    expect((await charge()).headers.getSetCookie()).toEqual(['session=1']);
    expect((await charge()).headers.getSetCookie()).toEqual([]);
  });

  it('C84: keeps endpoints, and principals where they are told, apart', async () => {
    const mock = createIdempotencyMock({ principal: request => request.headers.get('x-user') ?? undefined });
    const names = ['orders', 'refunds'];
    for (const name of names) server.use(http.post(`https://api.test/${name}`, mock.idempotent(() => HttpResponse.json({ name }), { name })));
    for (const name of names) {
      for (const user of ['a', 'b', 'a']) await charge({ url: `https://api.test/${name}`, headers: { 'x-user': user } });
    }
    expect(names.map(name => mock.executions(name))).toEqual([2, 2]);
    expect((await charge({ url: 'https://api.test/orders' })).status).toBe(400);
  });

  it('lets a resolver fall through: the next handler can read the request, nothing was executed, the key stays free', async () => {
    const mock = createIdempotencyMock();
    server.use(
      http.post(CHARGES, mock.idempotent(() => undefined, { name: 'charge' })),
      http.post(CHARGES, async ({ request }) => HttpResponse.text(await request.text())),
    );
    expect(await (await charge()).text()).toBe('{"amount":4200}');
    expect(await (await charge({ body: '{"other":1}' })).text()).toBe('{"other":1}');
    expect(mock.executions()).toBe(0);
    expect(kindsOf(mock.ledger).slice(0, 4)).toEqual(['request', 'claim', 'execution', 'fell-through']);
  });

  it('lets a resolver pass the request through to the real server', async () => {
    const real = createServer((_request, response) => response.end('real')).listen(0, '127.0.0.1');
    await new Promise(resolve => real.once('listening', resolve));
    const url = `http://127.0.0.1:${(real.address() as AddressInfo).port}/`;
    const mock = createIdempotencyMock();
    server.use(http.post(url, mock.idempotent(() => passthrough(), { name: 'charge' })));
    const response = await charge({ url });
    expect([await response.text(), response.headers.has('samekey-mock'), mock.executions()]).toEqual(['real', false, 0]);
    await new Promise(resolve => real.close(resolve));
  });

  it('owns the iterator of a generator: a replay does not move it, the last answer stays', async () => {
    const mock = createIdempotencyMock();
    const steps = function* () {
      yield HttpResponse.json({ step: 1 });
      yield HttpResponse.json({ step: 2 });
      return HttpResponse.json({ step: 3 });
    };
    server.use(http.post(CHARGES, mock.idempotent(steps, { name: 'charge' })));
    const stepOf = async (key: string): Promise<unknown> => ((await (await charge({ key })).json()) as { step: number }).step;
    expect([await stepOf('a'), await stepOf('a'), await stepOf('b'), await stepOf('a'), await stepOf('c'), await stepOf('d'), await stepOf('b')]).toEqual([1, 1, 2, 1, 3, 3, 2]);
    expect(mock.executions()).toBe(4);
    await mock.reset();
    expect(await stepOf('a')).toBe(1);
  });

  it('drives async generators, and a network error they yield frees the key', async () => {
    const mock = createIdempotencyMock();
    const steps = async function* () {
      yield HttpResponse.error();
      yield new HttpResponse(null, { status: 503 });
      return HttpResponse.json({ ok: true });
    };
    server.use(http.post(CHARGES, mock.idempotent(steps, { name: 'charge' })));
    await expect(charge()).rejects.toThrow(TypeError);
    expect((await charge()).status).toBe(503);
    expect(await (await charge()).json()).toEqual({ ok: true });
    expect([(await charge()).headers.get('idempotent-replayed'), mock.executions()]).toEqual(['true', 3]);
  });

  it('takes a thrown Response as the answer', async () => {
    const mock = createIdempotencyMock();
    const refuse = (): never => {
      // oxlint-disable-next-line typescript/only-throw-error -- MSW's own idiom
      throw HttpResponse.json({ error: 'card' }, { status: 402 });
    };
    server.use(http.post(CHARGES, mock.idempotent(refuse, { name: 'charge' })));
    expect([(await charge()).status, (await charge()).status, mock.executions()]).toEqual([402, 402, 1]);
  });

  it('tells a resolver about its run, and takes its word for an effect that cannot be undone', async () => {
    const mock = createIdempotencyMock();
    const resolver = mock.idempotent(
      async ({ idempotency }) => {
        await idempotency.effectStarted();
        return new HttpResponse(`${idempotency.key} ${idempotency.attempt}`, { status: 500 });
      },
      { name: 'charge' },
    );
    server.use(http.post(CHARGES, resolver));
    expect(await (await charge({ key: 'k7' })).text()).toBe('k7 1');
    expect(await (await charge({ key: 'k7' })).json()).toMatchObject({ code: 'idempotency_indeterminate' });
    expect(await mock.resolve('k7', 'not-applied')).toBe(true);
    expect(await (await charge({ key: 'k7' })).text()).toBe('k7 2');
    expect(await mock.resolve('k8', 'applied')).toBe(false);
  });

  it('speaks Stripe', async () => {
    const mock = createIdempotencyMock({ profile: stripe });
    server.use(http.post(CHARGES, mock.idempotent(() => HttpResponse.json({ error: {} }, { status: 500 }), { name: 'charge' })));
    await charge();
    const replay = await charge();
    expect([replay.status, replay.headers.get('idempotent-replayed'), replay.headers.get('stripe-should-retry')]).toEqual([500, 'true', 'false']);
    const reuse = await charge({ body: '{}' });
    expect([reuse.status, await reuse.json()]).toMatchObject([400, { error: { type: 'idempotency_error' } }]);
    expect(mock.executions()).toBe(1);
  });

  it('C100: a new mock on the same store replays what the old one executed, and knows how often that was', async () => {
    const store = memoryDedupStore();
    chargesMock({ store });
    expect(await (await charge()).json()).toEqual({ id: 1 });
    server.resetHandlers();
    const after = chargesMock({ store });
    await after.load();
    expect(after.executions('charge')).toBe(1);
    const replay = await charge();
    expect([await replay.json(), replay.headers.get('idempotent-replayed')]).toEqual([{ id: 1 }, 'true']);
    expect(after.executions('charge')).toBe(1);
    await after.reset();
    expect([after.ledger, after.executions()]).toEqual([[], 0]);
    expect((await charge()).headers.get('idempotency-status')).toBe('stored');
  });

  it('C100: what a client goes on with after a reload of page and mock is replayed', async () => {
    const store = memoryDedupStore();
    const backing = memoryBacking();
    const open = () => createClient({ prefix: 'https://api.test', keystore: memoryKeyStore({ backing }), scope: 'acct_1', retry: 0 });
    const before = chargesMock({ store });
    before.fault('charge', 'lose-response');
    const page = open();
    await expect(page.post('charges', { operation: 'order:42', json: { amount: 4200 } })).rejects.toMatchObject({ code: 'OPERATION_PENDING' });
    await page.close();
    server.resetHandlers();
    const after = chargesMock({ store });
    const reloaded = open();
    const response = await reloaded.post('charges', { operation: 'order:42', json: { amount: 4200 } });
    expect([await response.json(), operationOf(response)?.replayed, after.executions('charge')]).toEqual([{ id: 1 }, 'server', 1]);
    await reloaded.close();
  });

  it('writes nothing of a run from before a reset', async () => {
    const mock = createIdempotencyMock();
    let finish = (): void => {};
    const finished = new Promise<void>(resolve => (finish = resolve));
    server.use(http.post(CHARGES, mock.idempotent(async () => finished.then(() => HttpResponse.json({})), { name: 'charge' })));
    const before = charge();
    await expect.poll(() => mock.executions()).toBe(1);
    await mock.reset();
    finish();
    await before;
    expect(mock.ledger).toEqual([]);
  });
});
