import { describe, expect, it } from 'vitest';
import { operationOf } from '../../src/client.js';
import { BodyNotReplayableError, InDoubtError, OperationMismatchError, OperationPendingError, StoreFullError, isSamekeyError } from '../../src/errors.js';
import type { KeyStore } from '../../src/keystore/keystore.js';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import type { Head } from '../../src/operation.js';
import { networkError, problem, scripted } from '../support/transport.js';
import { settleDown, virtualClock } from '../support/virtual-clock.js';
import { bench, created, failure, ORIGIN } from './setup.js';

const busy = new Response('busy', { status: 503 });
const charge = { operation: 'order:42:charge', json: { amount: 4200 } };

describe('one key per operation', () => {
  it('C01: keeps one key over 503, 503, 200, also under a beforeRequest hook of the caller, and has stored it before the first send', async () => {
    const storedKeys: (string | undefined)[] = [];
    const { api, transport, backing } = bench([() => {
      storedKeys.push(([...backing.heads.values()][0] as Head).key);
      return busy.clone();
    }, busy, created()], { hooks: { beforeRequest: [({ request }) => request.headers.set('x-trace', crypto.randomUUID())] } });
    await api.post('charges', { json: { amount: 1 } }).json();
    expect(transport.seen).toHaveLength(3);
    expect(transport.keys).toHaveLength(1);
    expect(storedKeys).toEqual(transport.keys);
    expect(new Set(transport.seen.map(({ headers }) => headers.get('x-trace'))).size).toBe(1);
  });

  it('C02: the same name has the same key in two calls, two unnamed calls have two', async () => {
    const { api, transport } = bench([networkError(), networkError(), created()], { retry: 1 });
    await failure(api.post('charges', charge));
    await api.post('charges', charge);
    expect(transport.keys).toHaveLength(1);
    await api.post('charges', { json: {} });
    await api.post('charges', { json: {} });
    expect(transport.keys).toHaveLength(3);
  });

  it.each<[string, Response | Error]>([
    ['network error', networkError()], ['500', new Response(null, { status: 500 })], ['503', busy], ['504', new Response(null, { status: 504 })],
    ['409 in progress', problem(409, 'idempotency_in_progress', {}, { 'retry-after': '1' })],
  ])('C06: after %s the outcome is unknown, the key stays, and the next call of the name uses it', async (_, first) => {
    const steps = [first];
    const transport = scripted(steps);
    const { api, clock } = bench([], { fetch: request => transport.fetch(request), retry: 0, totalTimeout: 900 });
    const error = await failure(api.post('charges', charge));
    expect(error).toBeInstanceOf(OperationPendingError);
    expect(error).toMatchObject({ phase: 'unknown', operation: { state: 'pending', key: transport.keys[0] } });
    steps[0] = created();
    clock.shift(5_000);
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect(transport.keys).toHaveLength(1);
  });

  it('C06: an abort keeps key and record', async () => {
    const { api, transport, clock } = bench(['hang', created()], { clock: virtualClock({ auto: false }) });
    const controller = new AbortController();
    const first = failure(api.post('charges', { ...charge, signal: controller.signal }));
    await settleDown();
    controller.abort(new Error('the user left'));
    expect((await first).message).toBe('the user left');
    await clock.advance(20_000);
    const second = api.post('charges', charge).json();
    await clock.advance(20_000);
    expect(await second).toEqual({ id: 'ch_1' });
    expect(transport.keys).toHaveLength(1);
  });

  it.each([[201, 'succeeded'], [402, 'rejected'], [422, 'rejected'], [401, 'rejected']])('C06: %i is final: %s', async (status, state) => {
    const { api } = bench([new Response('{}', { status })]);
    const call = api.post('charges', { ...charge, throwHttpErrors: false });
    await call;
    expect(operationOf(call)).toMatchObject({ state, phase: 'answered' });
  });

  it('C07: without a name the next identical create is a new operation, and a replay is told', async () => {
    const replay = (): Response => Response.json({ id: 'ch_1' }, { status: 201, headers: { 'idempotent-replayed': 'true' } });
    const { api, transport } = bench([networkError(), replay, created('ch_2')]);
    const first = await api.post('things', { json: { title: 'x' } });
    const second = await api.post('things', { json: { title: 'x' } });
    expect(operationOf(first)?.replayed).toBe('server');
    expect(operationOf(second)?.replayed).toBe(false);
    expect(transport.keys).toHaveLength(2);
  });

  it('C08: a key that is reserved by name is the one that is sent, however often the name is called', async () => {
    const { api, transport } = bench([busy, created()], { keyStrategy: 'random' });
    const key = await api.operations.key('draft:7');
    expect(await api.operations.key('draft:7')).toBe(key);
    await api.post('charges', { operation: 'draft:7', json: { a: 1 } });
    await api.post('charges', { operation: 'draft:7', json: { a: 1 } });
    expect(transport.keys).toEqual([key]);
    expect(transport.seen).toHaveLength(2);
  });

  it('C11: what is sent again are the first bytes, whatever became of the object; another payload under the name is refused before any send', async () => {
    const payload = { amount: 1, metadata: undefined as unknown };
    const { api, transport } = bench([() => {
      payload.metadata = { late: true };
      throw networkError();
    }, networkError(), created()], { retry: 1 });
    await failure(api.post('charges', { operation: 'o', json: payload }));
    expect(new Set(transport.seen.map(({ text }) => text))).toEqual(new Set(['{"amount":1}']));
    const error = await failure(api.post('charges', { operation: 'o', json: payload }));
    expect(error).toBeInstanceOf(OperationMismatchError);
    expect(error).toMatchObject({ phase: 'not-sent', operation: { name: 'o', state: 'pending' }, message: expect.stringContaining('the body of POST') });
    expect(transport.seen).toHaveLength(2);
  });

  it('C12: a key of the caller goes out as it is; newKey makes the others; when the store refuses the record, nothing is sent', async () => {
    let minted = 0;
    const { api, transport } = bench([created()], { newKey: () => `own-${(minted += 1)}` });
    await api.post('charges', { json: {}, headers: { 'Idempotency-Key': 'mine-1' } });
    await api.post('charges', { json: {} });
    expect(transport.keys).toEqual(['mine-1', expect.stringMatching(/^own-\d+$/)]);
    const full = bench([created()], { keystore: { ...memoryKeyStore(), commit: () => Promise.reject(new Error('disk on fire')) } });
    expect(isSamekeyError(await failure(full.api.post('charges', charge)), 'STORE_UNAVAILABLE')).toBe(true);
    expect(full.transport.seen).toHaveLength(0);
  });
});

describe('a store without room', () => {
  /** Refuses so many new heads for want of room. */
  const refusing = (store: KeyStore, refusals: number): KeyStore => {
    let left = refusals;
    const commit: KeyStore['commit'] = async (writes, durability) =>
      writes[0]?.next?.shelf === 'open' && left-- > 0 ? [{ kind: 'failed', error: new StoreFullError('quota') }] : store.commit(writes, durability);
    return { ...store, commit };
  };

  it('C42: what is over is dropped once, then the write is tried again', async () => {
    const keystore: KeyStore = memoryKeyStore();
    const brief = { retention: 1_000, nameRetention: 1_000, keyWindow: 1_000 };
    const { api, clock } = bench([created()], { keystore, ...brief });
    await api.post('charges', { ...charge, operation: 'old' });
    clock.shift(5_000);
    const again = bench([created()], { keystore: refusing(keystore, 1), clock, ...brief });
    expect(await again.api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect(await again.api.operations.get('old')).toBeUndefined();
  });

  it('C42: a store that stays full rejects with StoreFullError, and nothing is sent', async () => {
    const { api, transport } = bench([created()], { keystore: refusing(memoryKeyStore(), Number.POSITIVE_INFINITY) });
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(StoreFullError);
    expect(transport.seen).toHaveLength(0);
  });
});

describe('a page or process that goes away', () => {
  it('C05, C19: resume sends what was begun with the same key and bytes; calling the name again joins it', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const first = bench(['hang'], { backing, clock });
    void first.api.post('charges', charge).catch(() => undefined);
    await settleDown();
    // The page is gone: its owner is dead, nothing of it runs any more.
    backing.owners.clear();
    const second = bench([created('ch_9')], { backing, clock });
    const report = await second.api.operations.resume();
    expect(report.succeeded).toMatchObject([{ name: 'order:42:charge', state: 'succeeded' }]);
    expect(second.transport.seen[0]).toMatchObject({ key: first.transport.seen[0]?.key, text: first.transport.seen[0]?.text });
    expect(await second.api.post('charges', charge).json()).toEqual({ id: 'ch_9' });
    expect(second.transport.seen).toHaveLength(1);
  });

  it('C20: five reloads while offline leave one record with its key and attempts', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    const keys = new Set<unknown>();
    for (let reload = 0; reload < 5; reload += 1) {
      const { api, transport } = bench([networkError()], { backing, clock, retry: 0 });
      await failure(api.post('charges', charge));
      await api.close();
      for (const key of transport.keys) keys.add(key);
    }
    expect(backing.heads.size).toBe(1);
    expect(keys.size).toBe(1);
    expect([...backing.heads.values()][0]).toMatchObject({ attempts: 5, state: 'pending' });
  });

  it('C50: two tabs that resume at once send each operation once; two resumes in one tab are one drain', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    const writer = bench([networkError()], { backing, clock, retry: 0 });
    for (let at = 0; at < 20; at += 1) await failure(writer.api.post('charges', { operation: `o:${at}`, json: { at } }));
    await writer.api.close();
    clock.shift(60_000);
    const tabs = [bench([created()], { backing, clock }), bench([created()], { backing, clock })];
    await Promise.all(tabs.flatMap(({ api }) => [api.operations.resume(), api.operations.resume()]));
    const sent = tabs.flatMap(({ transport }) => transport.seen);
    expect(sent).toHaveLength(20);
    expect(new Set(sent.map(({ key }) => key))).toEqual(new Set(writer.transport.keys));
  });

  it('C50: what a dead tab had claimed is taken over at once, from a silent one only after its lease and one more', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const silent = bench(['hang'], { backing, clock, timeout: false, lease: 15_000 });
    void silent.api.post('charges', charge).catch(() => undefined);
    await settleDown();
    const other = bench([created()], { backing, clock: virtualClock({ start: clock.now(), auto: false }) });
    expect((await other.api.operations.resume()).busy).toHaveLength(1);
    const at = async (ms: number): Promise<number> => {
      await (other.clock).advance(ms);
      return (await other.api.operations.resume()).succeeded.length;
    };
    expect(await at(29_000)).toBe(0);
    expect(await at(2_000)).toBe(1);
    expect(other.transport.keys).toEqual(silent.transport.keys);
  });
});

describe('retries', () => {
  it('C22: waits on 409 as long as it is told, without using up attempts, and gets the stored answer', async () => {
    const inProgress = problem(409, 'idempotency_in_progress', {}, { 'retry-after': '1' });
    const { api, transport, clock } = bench(['hang', ...Array<Response>(5).fill(inProgress), created()], { timeout: 2_000, retry: 1 });
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect(transport.keys).toHaveLength(1);
    expect(clock.sleeps.filter(ms => ms === 1_000)).toHaveLength(5);
  });

  it('C22: when the time is over first, the outcome is unknown and the key kept; another problem type is a refusal', async () => {
    const inProgress = problem(409, 'idempotency_in_progress', {}, { 'retry-after': '1' });
    const { api } = bench([inProgress], { totalTimeout: 5_000 });
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'OPERATION_PENDING', phase: 'unknown', operation: { state: 'pending' } });
    const business = bench([problem(409, 'seat_taken', {}, { 'retry-after': '1' })]);
    expect(await failure(business.api.post('charges', charge))).toMatchObject({ name: 'HTTPError', response: { status: 409 } });
    expect(business.transport.seen).toHaveLength(1);
  });

  it('C24: a timeout is retried with the same key; without a key nothing is resent', async () => {
    const { api, transport } = bench(['hang', created()], { timeout: 2_000 });
    await api.post('charges', charge);
    expect(transport.keys).toHaveLength(1);
    expect(transport.seen).toHaveLength(2);
    const without = bench([networkError()]);
    await failure(without.api.post('login', { operation: false, json: {} }));
    expect(without.transport.seen).toHaveLength(1);
    expect(without.transport.keys).toEqual([null]);
  });

  it.each<[string, Error, string, string]>([
    ['a refused connection', networkError('ECONNREFUSED'), 'not-sent', 'cancelled'],
    ['a reset connection', networkError('ECONNRESET'), 'unknown', 'pending'],
  ])('C24: the error after %s says whether the server can have seen it', async (_, error, phase, state) => {
    const { api } = bench([error], { retry: 1 });
    expect(await failure(api.post('charges', { json: {} }))).toMatchObject({ code: 'OPERATION_PENDING', phase, operation: { state } });
  });

  it.each<[string, ResponseInit]>([
    ['502 with HTML', { status: 502, headers: { 'content-type': 'text/html' } }],
    ['503 with HTML', { status: 503, headers: { 'content-type': 'text/html' } }],
    ['503 with HTML that says it is JSON', { status: 503, headers: { 'content-type': 'application/json' } }],
    ['a proxy’s 500 page without a type', { status: 500 }],
  ])('C29: %s and no Retry-After is never taken for the answer: it is asked again, and until then nobody knows', async (_, init) => {
    const page = new Response('<html>Bad gateway</html>', init);
    const { api, backing, transport } = bench([page, page, created()], { retry: 1 });
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'OPERATION_PENDING', phase: 'unknown', operation: { state: 'pending' } });
    const kept = [...backing.heads.values()][0] as Head;
    expect([kept.answer, kept.response]).toEqual([undefined, null]);
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect([transport.seen.length, transport.keys.length, ([...backing.heads.values()][0] as Head).answer?.status]).toEqual([3, 1, 201]);
  });

  it('C31: a Retry-After of weeks ends the waiting now and keeps the record for later', async () => {
    const { api, transport, clock } = bench([new Response(null, { status: 429, headers: { 'retry-after': '2200000' } })], { totalTimeout: 30_000 });
    const error = await failure(api.post('charges', charge));
    expect(error).toMatchObject({ code: 'OPERATION_PENDING', nextAttemptAt: clock.now() + 60_000 });
    expect(transport.seen).toHaveLength(1);
  });

  it('C32: the deadline bounds the call, the timeout each attempt; an abort while backing off rejects at once and keeps the record', async () => {
    const { api, transport, clock, backing } = bench(['hang'], { timeout: 2_000, totalTimeout: 5_000, random: () => 1 });
    const start = clock.now();
    const error = await failure(api.post('charges', charge));
    expect(error).toMatchObject({ code: 'OPERATION_PENDING' });
    expect(clock.now() - start).toBeLessThanOrEqual(5_000);
    expect(transport.seen.map(({ at }) => at - start)).toEqual([0, 2_300, 4_900]);
    const manual = virtualClock({ auto: false });
    const second = bench([busy], { clock: manual });
    const controller = new AbortController();
    const call = failure(second.api.post('charges', { ...charge, signal: controller.signal }));
    await settleDown();
    controller.abort();
    expect((await call).name).toBe('AbortError');
    await settleDown();
    expect([...second.backing.heads.values()][0]).toMatchObject({ state: 'pending', nextAttemptAt: expect.any(Number), attempts: 1 });
    expect(backing.heads.size).toBe(1);
  });
});

describe('bodies', () => {
  const bytesOf = async (body: NonNullable<RequestInit['body']>): Promise<unknown[]> => {
    const { api, transport } = bench([networkError(), busy, created()]);
    await api.post('upload', { operation: 'u', body });
    expect(transport.seen).toHaveLength(3);
    expect(new Set(transport.seen.map(({ headers }) => headers.get('content-type'))).size).toBe(1);
    const texts = new Set(transport.seen.map(({ text }) => text));
    return [texts.size, transport.seen[0]?.body.byteLength, transport.seen[0]?.headers.get('content-type')];
  };
  const form = (): FormData => {
    const data = new FormData();
    data.set('a', '1');
    data.set('file', new Blob(['abc'], { type: 'text/plain' }), 'a.txt');
    return data;
  };
  const stream = (size: number): ReadableStream<Uint8Array> =>
    new ReadableStream({
      pull(controller) {
        for (let at = 0; at < size; at += 1000) controller.enqueue(new Uint8Array(Math.min(1000, size - at)).fill(65));
        controller.close();
      },
    });

  it.each<[string, () => NonNullable<RequestInit['body']>, number, RegExp | null]>([
    ['text', () => 'abc', 3, /^text\/plain/],
    ['bytes', () => new Uint8Array([0xff, 0, 1]), 3, null],
    ['URLSearchParams', () => new URLSearchParams({ a: '1' }), 3, /^application\/x-www-form-urlencoded/],
    ['a Blob', () => new Blob(['{}'], { type: 'application/json' }), 2, /^application\/json$/],
    ['a stream', () => stream(2_500), 2_500, null],
  ])('C33, C34: %s is sent byte by byte the same, with its content type', async (_, make, size, type) => {
    const [distinct, length, contentType] = await bytesOf(make());
    expect([distinct, length]).toEqual([1, size]);
    if (type) expect(contentType).toMatch(type);
  });

  it('C34, C35: FormData keeps one boundary over attempts, and its record has bytes and boundary', async () => {
    const { api, transport, backing } = bench([networkError()], { retry: 0 });
    await failure(api.post('upload', { operation: 'u', body: form() }));
    const head = [...backing.heads.values()][0] as Head;
    const stored = new Response(head.request, { headers: { 'content-type': head.snapshot?.contentType ?? '' } });
    expect((await stored.formData()).get('a')).toBe('1');
    await api.close();
    const after = bench([created()], { backing });
    after.clock.shift(60_000);
    await after.api.operations.resume();
    expect(after.transport.seen[0]).toMatchObject({ text: transport.seen[0]?.text, key: transport.seen[0]?.key });
    expect(after.transport.seen[0]?.headers.get('content-type')).toBe(transport.seen[0]?.headers.get('content-type'));
    // The same form, built anew, has another boundary and is still the same operation.
    expect(await after.api.post('upload', { operation: 'u', body: form() }).json()).toEqual({ id: 'ch_1' });
    const other = form();
    other.set('a', '2');
    expect(await failure(after.api.post('upload', { operation: 'u', body: other }))).toBeInstanceOf(OperationMismatchError);
  });

  it.each([['NaN', { amount: Number.NaN }, '"amount": NaN'], ['Infinity, deep', { lines: [{ sum: Infinity }] }, '"sum": Infinity'], ['NaN alone', Number.NaN, 'NaN']])('C81: %s in a body is an error before the send, not null', async (_, json, said) => {
    const { api, transport, backing } = bench([created()]);
    for (const named of [charge, {}]) {
      const error = await failure(api.post('charges', { ...named, json }));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toMatch(`has ${said}, which JSON would turn into null. Nothing was sent.`);
    }
    expect([transport.seen.length, backing.heads.size]).toEqual([0, 0]);
    // What samekey does not manage it does not judge, nor what the caller serialises.
    await api.post('events', { prefix: 'https://stats.test', json });
    await api.post('charges', { ...charge, json, stringifyJson: () => '{}' });
    const own = bench([created()], { stringifyJson: () => '{}' });
    await own.api.post('charges', { ...charge, json });
    expect([...transport.seen, ...own.transport.seen].map(({ text }) => text)).toEqual([JSON.stringify(json), '{}', '{}']);
  });

  it('C33: a stream over the limit is refused before any send, and never sent empty', async () => {
    const { api, transport } = bench([created()], { maxBodyBytes: 10_000 });
    const error = await failure(api.post('upload', { operation: 'u', body: stream(10_001) }));
    expect(error).toBeInstanceOf(BodyNotReplayableError);
    expect(error.message).toContain('maxBodyBytes (10000 bytes)');
    const used = new Request(`${ORIGIN}/upload`, { method: 'POST', body: 'x' });
    await used.text();
    expect(await failure(api.fetch(used))).toBeInstanceOf(Error);
    expect(transport.seen).toHaveLength(0);
  });
});

describe('the key window', () => {
  const begun = async (clock = virtualClock()) => {
    const backing = memoryBacking();
    const first = bench([networkError()], { backing, clock, retry: 0 });
    await failure(first.api.post('charges', charge));
    await first.api.close();
    return { backing, clock };
  };
  const DAY = 86_400_000;
  const MARGIN = 300_000;

  it('C94: resends until the window less its margin is over, then the operation is in doubt and nothing is sent', async () => {
    const { backing, clock } = await begun();
    clock.shift(DAY - MARGIN - 10_000 - 1);
    const inside = bench([busy], { backing, clock, retry: 0 });
    expect((await inside.api.operations.resume()).pending).toHaveLength(1);
    expect(inside.transport.seen).toHaveLength(1);
    clock.shift(10_000);
    const outside = bench([created()], { backing, clock });
    expect((await outside.api.operations.resume()).inDoubt).toMatchObject([{ state: 'in_doubt' }]);
    const error = await failure(outside.api.post('charges', charge));
    expect(error).toBeInstanceOf(InDoubtError);
    expect(error.message).toContain('may have forgotten the key');
    expect(outside.transport.seen).toHaveLength(0);
  });

  it('C94: a clock that is set back does not make the key young again', async () => {
    const { backing, clock } = await begun();
    clock.shift(-3 * DAY);
    const { api, transport } = bench([created()], { backing, clock });
    await api.operations.get('order:42:charge');
    await clock.advance(DAY);
    expect((await api.operations.resume()).inDoubt).toMatchObject([{ state: 'in_doubt' }]);
    expect(transport.seen).toHaveLength(0);
  });

  it('C94: an intent that is older than the window is not begun without its record', async () => {
    const { api, transport, clock } = bench([created()]);
    expect(await failure(api.post('charges', { ...charge, since: clock.now() - 2 * DAY }))).toBeInstanceOf(InDoubtError);
    expect(transport.seen).toHaveLength(0);
    await api.post('charges', { ...charge, operation: 'order:43', since: clock.now() - 1_000 });
    expect(transport.seen).toHaveLength(1);
  });
});

describe('the client as it stands in the field', () => {
  it('C36: 5 MB each way arrive whole, and an unread answer can be cancelled', async () => {
    const big = 'x'.repeat(5_000_000);
    const { api } = bench([async request => new Response(await request.text())], { maxAnswerBytes: 1_000 });
    expect((await api.post('echo', { body: big }).text()).length).toBe(big.length);
    const response = await api.fetch(`${ORIGIN}/echo`, { method: 'POST', body: big });
    await response.body?.cancel();
  });

  it('C99: an abort does not undo what the server did: a second call of the name gets its answer', async () => {
    const clock = virtualClock({ auto: false });
    let effects = 0;
    const { api, transport } = bench([async () => {
      await clock.sleep(150);
      effects += 1;
      return created();
    }], { clock });
    const controller = new AbortController();
    const call = failure(api.post('charges', { ...charge, signal: controller.signal }));
    await clock.advance(30);
    controller.abort();
    expect((await call).name).toBe('AbortError');
    await clock.advance(200);
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect([effects, transport.seen.length]).toEqual([1, 1]);
  });
});
