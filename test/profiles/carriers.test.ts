import { describe, expect, it } from 'vitest';
import { isSamekeyError, operationOf } from '../../src/index.js';
import { azure, bodyField, generic, gocardless, paypal, square, type Profile } from '../../src/profiles/index.js';
import { bench, created, failure, type BenchOptions } from '../client/setup.js';
import { networkError, type SeenRequest, type Step } from '../support/transport.js';
import { virtualClock } from '../support/virtual-clock.js';
import { keyOf } from './support.js';

const UUID = /^[\da-f]{8}-[\da-f]{4}-[57][\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/;

const withProfile = (profile: Profile, steps: readonly Step[], options: BenchOptions = {}) => bench(steps, { profile, ...options });

describe('a key in the body', () => {
  const bodyOf = ({ text }: SeenRequest): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

  it('goes out with every attempt, the same bytes each time, and in no header', async () => {
    const { api, transport } = withProfile(square, [networkError(), created()]);
    const response = await api.post('v2/payments', { operation: 'pay', json: { amount: 4200 } });
    const [first, second] = transport.seen;
    expect(transport.seen).toHaveLength(2);
    expect(first?.text).toBe(second?.text);
    expect(bodyOf(first!)).toEqual({ idempotency_key: operationOf(response)?.key, amount: 4200 });
    expect(bodyOf(first!)['idempotency_key']).toMatch(UUID);
    expect([...(first?.headers ?? [])].filter(([name]) => name.includes('idempotency'))).toEqual([]);
  });

  it('is the same for the same name, and is no difference between two requests', async () => {
    const { api, transport } = withProfile(square, [created()]);
    await api.post('v2/payments', { operation: 'pay', json: { amount: 4200 } });
    await api.post('v2/payments', { operation: 'pay', json: { amount: 4200 } });
    expect(transport.seen).toHaveLength(1);
    expect(await failure(api.post('v2/payments', { operation: 'pay', json: { amount: 1 } }))).toMatchObject({ code: 'OPERATION_MISMATCH' });
  });

  it('that the caller put there is adopted, like a header', async () => {
    const { api, transport } = withProfile(square, [networkError(), created()]);
    const response = await api.post('v2/payments', { json: { amount: 4200, idempotency_key: 'mine' } });
    expect(operationOf(response)).toMatchObject({ key: 'mine', attempts: 2 });
    expect(transport.seen.map(({ text }) => text)).toEqual(Array.from({ length: 2 }, () => '{"amount":4200,"idempotency_key":"mine"}'));
  });

  it('that was reserved for a name may be put there by hand', async () => {
    const { api, transport } = withProfile(square, [created()]);
    const key = await api.operations.key('pay');
    await api.post('v2/payments', { operation: 'pay', json: { idempotency_key: key, amount: 4200 } });
    expect(bodyOf(transport.seen[0]!)['idempotency_key']).toBe(key);
  });

  it('survives a restart: a resumed send has the key and the bytes', async () => {
    const clock = virtualClock();
    const before = withProfile(square, [networkError()], { clock, retry: 0 });
    expect(await failure(before.api.post('v2/payments', { operation: 'pay', json: { amount: 4200 } }))).toMatchObject({ code: 'OPERATION_PENDING' });
    await before.api.close();
    const after = withProfile(square, [created()], { clock, backing: before.backing });
    await after.clock.advance(60_000);
    expect((await after.api.operations.resume()).succeeded).toHaveLength(1);
    expect(after.transport.seen[0]?.text).toBe(before.transport.seen[0]?.text);
  });

  it.each([
    ['a form', { body: new URLSearchParams({ amount: '4200' }) }],
    ['text', { body: 'amount' }],
    ['a list', { json: [1] }],
    ['nothing', {}],
  ])('cannot travel in %s: a clear error, and nothing is sent or kept', async (_what, options) => {
    const { api, transport } = withProfile(square, [created()]);
    const error = await failure(api.post('v2/payments', { operation: 'pay', ...options }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/"idempotency_key" of a JSON object, and this body \(\d+ bytes\) is not one\. Nothing was sent\. Pass `json: \{ … \}`/);
    expect(transport.seen).toEqual([]);
    expect(await api.operations.get('pay')).toBeUndefined();
  });

  it.each([['empty', ''], ['longer than the dialect takes', 'x'.repeat(46)]])('that is %s is refused before the first send', async (_what, key) => {
    const { api, transport } = withProfile(square, [created()]);
    expect(await failure(api.post('v2/payments', { json: { idempotency_key: key } }))).toMatchObject({ code: 'INVALID_KEY' });
    expect(transport.seen).toEqual([]);
  });

  it('that is no string is refused, too', async () => {
    const { api, transport } = withProfile(square, [created()]);
    expect((await failure(api.post('v2/payments', { json: { idempotency_key: 7 } }))).message).toContain('holds 7');
    expect(transport.seen).toEqual([]);
  });

  it('works for any dialect that names the member', async () => {
    const { api, transport } = withProfile({ ...generic, header: undefined, bodyField: bodyField('request_id') }, [created()]);
    await api.post('v1/books', { json: {} });
    expect(bodyOf(transport.seen[0]!)['request_id']).toMatch(UUID);
  });
});

describe('the time of the first send', () => {
  it('is the same on every attempt, however late it is', async () => {
    const clock = virtualClock();
    const { api, transport } = withProfile(azure, [networkError(), Response.json({}, { status: 503 }), created()], { clock });
    const start = clock.now();
    await api.post('emails:send', { operation: 'welcome', json: {} });
    expect(transport.seen.map(({ headers }) => headers.get('repeatability-first-sent'))).toEqual(Array.from({ length: 3 }, () => new Date(start).toUTCString()));
    expect(new Set(transport.seen.map(({ headers }) => headers.get('repeatability-request-id'))).size).toBe(1);
    expect(transport.seen.at(-1)!.at).toBeGreaterThan(start);
  });

  it('comes from the record after a restart', async () => {
    const clock = virtualClock();
    const start = clock.now();
    const before = withProfile(azure, [networkError()], { clock, retry: 0 });
    await failure(before.api.post('emails:send', { operation: 'welcome', json: {} }));
    await before.api.close();
    const after = withProfile(azure, [created()], { clock, backing: before.backing });
    await clock.advance(60_000);
    expect((await after.api.operations.resume()).succeeded).toHaveLength(1);
    expect(after.transport.seen[0]?.headers.get('repeatability-first-sent')).toBe(new Date(start).toUTCString());
  });

  it('that the caller knows better, with a key of its own, is left as it is', async () => {
    const { api, transport } = withProfile(azure, [created()]);
    const firstSent = 'Tue, 03 Feb 2026 04:05:06 GMT';
    await api.post('emails:send', { json: {}, headers: { 'repeatability-request-id': keyOf('mine'), 'repeatability-first-sent': firstSent } });
    expect(transport.seen[0]?.headers.get('repeatability-first-sent')).toBe(firstSent);
  });

  it('ends the resending before the server would refuse it', async () => {
    const { api, transport, clock } = withProfile(azure, [networkError(), created()], { retry: 0 });
    await failure(api.post('emails:send', { operation: 'welcome', json: {} }));
    await clock.advance(azure.keyWindow);
    expect(await failure(api.post('emails:send', { operation: 'welcome', json: {} }))).toMatchObject({ code: 'IN_DOUBT' });
    expect(transport.seen).toHaveLength(1);
  });
});

describe('the form of a key', () => {
  it('that the dialect cannot carry is refused before anything is sent, wherever the key came from', async () => {
    const { api, transport } = withProfile(paypal, [created()]);
    expect(await failure(api.post('v2/orders', { json: {}, headers: { 'paypal-request-id': 'x'.repeat(109) } }))).toMatchObject({ code: 'INVALID_KEY' });
    const short = withProfile({ ...generic, maxLength: 30 }, [created()]);
    for (const operation of ['order:1', undefined]) {
      expect((await failure(short.api.post('v1', { json: {}, operation }))).message).toContain('(36 characters) cannot be carried by the profile "generic"');
    }
    const guid = withProfile(azure, [created()]);
    expect(await failure(guid.api.post('emails:send', { json: {}, headers: { 'repeatability-request-id': 'order-42' } }))).toMatchObject({ code: 'INVALID_KEY' });
    expect([transport, short.transport, guid.transport].flatMap(({ seen }) => seen)).toEqual([]);
  });

  it('may be the dialect’s own: it is made of the UUID, and the same for the same name', async () => {
    const compact: Profile = { ...generic, maxLength: 32, keyFormat: /^[\da-f]{32}$/, formatKey: uuid => uuid.replaceAll('-', '') };
    const keys = [];
    for (let device = 1; device <= 2; device += 1) {
      const { api, transport } = withProfile(compact, [created()]);
      await api.post('v1', { json: {}, operation: 'order:1' });
      keys.push(...transport.keys);
    }
    expect(keys).toEqual([expect.stringMatching(/^[\da-f]{32}$/), keys[0]]);
  });
});

describe('what is there already', () => {
  const conflict = (id = 'PM1'): Response =>
    Response.json({ error: { type: 'invalid_state', code: 409, errors: [{ reason: 'idempotent_creation_conflict', links: { conflicting_resource_id: id } }] } }, { status: 409 });
  const resource = (): Response => Response.json({ payments: { id: 'PM1', amount: 4200 } });
  const pay = { operation: 'order:1', json: { payments: { amount: 4200 } } };

  it('is fetched, without a key, and is the answer, when an attempt of ours may have made it', async () => {
    const { api, transport } = withProfile(gocardless, [networkError(), conflict(), resource()], { authorize: () => ({ authorization: 'Bearer t' }) });
    const response = await api.post('payments', pay);
    expect(await response.json()).toEqual({ payments: { id: 'PM1', amount: 4200 } });
    expect(operationOf(response)).toMatchObject({ state: 'succeeded', replayed: 'server', attempts: 2 });
    const [post, again, get] = transport.seen;
    expect([post?.key, get?.method, get?.url, get?.key, get?.text, get?.headers.get('authorization')]).toEqual([again?.key, 'GET', 'https://api.test/payments/PM1', null, '', 'Bearer t']);
    expect(await (await api.post('payments', pay)).json()).toEqual({ payments: { id: 'PM1', amount: 4200 } });
    expect(transport.seen).toHaveLength(3);
  });

  it('may be somebody else’s when we made no attempt before: in doubt, with what was found', async () => {
    const { api, transport } = withProfile(gocardless, [conflict(), resource()]);
    const error = await failure(api.post('payments', pay));
    expect(error).toMatchObject({ code: 'IN_DOUBT' });
    expect(await (error['response'] as Response).json()).toEqual({ payments: { id: 'PM1', amount: 4200 } });
    expect(transport.seen).toHaveLength(2);
  });

  it('is ours when `compare` says so, and in doubt when it says no', async () => {
    const compare = async (found: Response, request: Request): Promise<boolean> => {
      const [there, asked] = [await found.json(), await request.json()] as { payments: { amount: number } }[];
      return there?.payments.amount === asked?.payments.amount;
    };
    const mine = withProfile(gocardless, [conflict(), resource()], { compare });
    expect((await mine.api.post('payments', pay)).status).toBe(200);
    const other = withProfile(gocardless, [conflict(), resource()], { compare });
    expect(await failure(other.api.post('payments', { ...pay, json: { payments: { amount: 1 } } }))).toMatchObject({ code: 'IN_DOUBT' });
  });

  it('that cannot be had now is asked for again, under the same key', async () => {
    for (const hitch of [networkError(), Response.json({}, { status: 503 }), new Response('{"pay', { headers: { 'content-type': 'application/json' } })]) {
      const steps = [networkError(), conflict(), hitch, conflict(), resource()];
      const { api, transport } = withProfile(gocardless, steps);
      expect(await (await api.post('payments', pay)).json()).toEqual({ payments: { id: 'PM1', amount: 4200 } });
      expect(new Set(transport.seen.filter(({ method }) => method === 'POST').map(({ key }) => key)).size).toBe(1);
    }
  });

  it('that is never found leaves the operation pending, not refused', async () => {
    const { api } = withProfile(gocardless, [networkError(), conflict('..')], { retry: 2 });
    const error = await failure(api.post('payments', pay));
    expect(isSamekeyError(error, 'OPERATION_PENDING')).toBe(true);
    expect(await api.operations.get('order:1')).toMatchObject({ state: 'pending' });
  });

  it('is not waited for without a limit: a `compare` that never comes back leaves the operation pending', async () => {
    const { api } = withProfile(gocardless, [conflict(), resource()], { compare: () => new Promise<boolean>(() => undefined), retry: 0 });
    expect(await failure(api.post('payments', pay))).toMatchObject({ code: 'OPERATION_PENDING' });
  });
});
