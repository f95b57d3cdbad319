import { describe, expect, it } from 'vitest';
import { createClient, operationOf } from '../../src/client.js';
import {
  AnswerOmittedError, ForeignScopeError, InDoubtError, KeyReusedError, OperationMismatchError, OperationPendingError, RedirectedError,
  ScopeMissingError, StoreFullError, UndeclaredOriginError,
} from '../../src/errors.js';
import { memoryBacking, memoryKeyStore, type MemoryBacking } from '../../src/keystore/memory.js';
import type { Head } from '../../src/operation.js';
import { deviceScope } from '../../src/options.js';
import { networkError, problem, type Step } from '../support/transport.js';
import { settleDown, virtualClock } from '../support/virtual-clock.js';
import { bench, created, failure, ORIGIN, type BenchOptions } from './setup.js';

const charge = { operation: 'o', json: { amount: 1 } };
const other = { operation: 'o', json: { amount: 2 } };
const busy = new Response('busy', { status: 503 });
const refusal = new Response('{"error":"declined"}', { status: 402 });
const stored = { 'idempotency-status': 'stored' };
const storedRefusal = new Response('{"error":"declined"}', { status: 402, headers: stored });
const headOf = (backing: MemoryBacking, name = 'o'): Head => [...backing.heads.values()].find(head => head.id === `name:${name}`) as Head;

describe('rule 1: written before it is sent', () => {
  it('commits the head strictly, with its key, bytes and firstSentAt, before the first byte leaves', async () => {
    const log: string[] = [];
    const memory = memoryKeyStore();
    const keystore = {
      ...memory, info: memory.info,
      commit: (async (writes, durability) => {
        const result = await memory.commit(writes, durability);
        const next = writes[0]?.next as Head | undefined;
        log.push(`${durability} ${next?.state} ${next?.firstSentAt === undefined ? 'unsent' : 'maybe sent'}`);
        return result;
      }) as typeof memory.commit,
    };
    const { api } = bench([() => (log.push('sent'), created())], { keystore });
    await api.post('charges', charge);
    expect(log).toEqual(['strict pending maybe sent', 'sent', 'relaxed succeeded maybe sent']);
  });

  it('makes a rejection durable before the name is free', async () => {
    const log: string[] = [];
    const memory = memoryKeyStore();
    const keystore = { ...memory, info: memory.info, commit: ((writes, durability) => (log.push(String(durability)), memory.commit(writes, durability))) as typeof memory.commit };
    const { api } = bench([refusal], { keystore });
    await failure(api.post('charges', charge));
    expect(log).toEqual(['strict', 'strict']);
  });

  it('clears firstSentAt again when it is proven that nothing left', async () => {
    const { api, backing } = bench([networkError('ECONNREFUSED')], { retry: 1 });
    const error = await failure(api.post('charges', charge));
    expect(error).toMatchObject({ code: 'OPERATION_PENDING', phase: 'not-sent' });
    expect(headOf(backing)).toMatchObject({ state: 'pending', firstSentAt: undefined, ambiguous: false });
  });

  it('sends unprotected only when told to, says so, and never under a name', async () => {
    const keystore = { ...memoryKeyStore(), info: memoryKeyStore().info, commit: () => Promise.reject(new Error('down')) };
    const failures: unknown[] = [];
    const { api, transport } = bench([busy, created()], { keystore, onStoreFailure: 'send-unprotected', on: { storeFailure: event => failures.push(event.error) } });
    const response = await api.post('charges', { json: {} });
    expect(operationOf(response)).toMatchObject({ state: 'succeeded', durable: false });
    expect(transport.keys).toHaveLength(1);
    expect(failures).toHaveLength(1);
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(transport.seen).toHaveLength(2);
  });
});

describe('rule 2: a call under an existing name', () => {
  /** Brings the operation into a situation on `backing`, and says what a second client then meets. */
  const situations: Record<string, (backing: MemoryBacking) => Promise<void>> = {
    succeeded: async backing => void (await bench([created()], { backing }).api.post('charges', charge)),
    'in doubt': async backing => void (await failure(bench([networkError(), refusal], { backing }).api.post('charges', charge))),
    'pending and free': async backing => {
      const { api } = bench([networkError()], { backing, retry: 0, random: () => 0 });
      await failure(api.post('charges', charge));
      await api.close();
    },
    'pending, never sent': async backing => {
      const { api } = bench([networkError('ECONNREFUSED')], { backing, retry: 0, random: () => 0 });
      await failure(api.post('charges', charge));
      await api.close();
    },
    'rejected by an answer': async backing => void (await failure(bench([refusal], { backing }).api.post('charges', charge))),
    'rejected, stored': async backing => void (await failure(bench([storedRefusal], { backing }).api.post('charges', charge))),
    'rejected, not admitted': async backing => void (await failure(bench([new Response(null, { status: 401 })], { backing }).api.post('charges', charge))),
    reserved: async backing => void (await bench([], { backing }).api.operations.key('o')),
    cancelled: async backing => {
      const { api } = bench([networkError('ECONNREFUSED')], { backing, retry: 0 });
      await failure(api.post('charges', charge));
      await api.operations.cancel('o');
    },
  };

  it.each<[situation: string, same: string, other: string]>([
    ['succeeded', 'stored answer', 'OperationMismatchError'],
    ['in doubt', 'InDoubtError', 'OperationMismatchError'],
    ['pending and free', 'sent, same key', 'OperationMismatchError'],
    ['pending, never sent', 'sent, same key', 'OperationMismatchError'],
    ['rejected by an answer', 'HTTPError', 'sent, same key'],
    ['rejected, stored', 'HTTPError', 'sent, next key'],
    ['rejected, not admitted', 'sent, same key', 'sent, same key'],
    ['reserved', 'sent, same key', 'sent, same key'],
    ['cancelled', 'sent, same key', 'sent, same key'],
  ])('%s: the same request gets "%s", another "%s"', async (situation, same, different) => {
    const outcome = async (call: typeof charge): Promise<string> => {
      const backing = memoryBacking();
      await situations[situation]?.(backing);
      const { key } = headOf(backing);
      const { api, transport } = bench([created('second')], { backing });
      try {
        await api.post('charges', call);
      } catch (error) {
        expect(transport.seen).toHaveLength(0);
        return (error as Error).name;
      }
      if (transport.seen.length === 0) return 'stored answer';
      return transport.keys[0] === key ? 'sent, same key' : 'sent, next key';
    };
    expect([await outcome(charge), await outcome(other)]).toEqual([same, different]);
  });

  it.each([
    ['rejected by an answer', true], ['rejected, stored', false],
  ])('%s: `again` sends once more, under the same key: %s', async (situation, sameKey) => {
    const backing = memoryBacking();
    await situations[situation]?.(backing);
    const { key } = headOf(backing);
    const { api, transport } = bench([created()], { backing });
    await api.post('charges', { ...charge, again: true });
    expect(transport.keys[0] === key).toBe(sameKey);
    expect(await api.operations.get('o')).toMatchObject({ state: 'succeeded', generation: sameKey ? 1 : 2, past: sameKey ? [] : [{ generation: 1, key, state: 'rejected', status: 402 }] });
    await api.post('charges', { ...charge, again: true });
    expect(transport.seen).toHaveLength(1);
  });

  it('joins what is in flight here: one send, an own Response for each, and one abort does not end the others', async () => {
    const clock = virtualClock({ auto: false });
    const { api, transport } = bench([async () => (await clock.sleep(100), created())], { clock });
    const controller = new AbortController();
    const calls = [api.post('charges', charge), api.post('charges', { ...charge, signal: controller.signal }), api.post('charges', charge)];
    const settled = Promise.allSettled(calls);
    await settleDown();
    controller.abort();
    await clock.advance(200);
    const [first, second, third] = await settled;
    expect([first?.status, second?.status, third?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const [a, b] = await Promise.all([calls[0], calls[2]]);
    expect([await a?.json(), await b?.json()]).toEqual([{ id: 'ch_1' }, { id: 'ch_1' }]);
    expect(transport.seen).toHaveLength(1);
    expect(await failure(api.post('charges', other))).toBeInstanceOf(OperationMismatchError);
  });

  it('refuses another request under a name that is in flight here', async () => {
    const clock = virtualClock({ auto: false });
    const { api } = bench(['hang'], { clock });
    void api.post('charges', charge).catch(() => undefined);
    await settleDown();
    expect(await failure(api.post('charges', other))).toBeInstanceOf(OperationMismatchError);
  });

  it('waits for what another tab drives, and gives its answer without a request', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const first = bench([async () => (await clock.sleep(2_000), created('theirs'))], { backing, clock });
    const second = bench([created('mine')], { backing, clock });
    const theirs = first.api.post('charges', charge).json();
    await settleDown();
    const mine = second.api.post('charges', charge);
    await clock.advance(5_000);
    expect([await theirs, await mine.json()]).toEqual([{ id: 'theirs' }, { id: 'theirs' }]);
    expect(second.transport.seen).toHaveLength(0);
    expect(operationOf(mine)?.replayed).toBe('keystore');
  });

  it('demands a scope for a name, and tells three ways to give one', async () => {
    const { api, transport } = bench([created()], { scope: () => undefined });
    const error = await failure(api.post('charges', charge));
    expect(error).toBeInstanceOf(ScopeMissingError);
    expect(error.message).toMatch(/remote account.*user\.id.*deviceScope/s);
    expect(transport.seen).toHaveLength(0);
    await api.post('charges', { ...charge, scope: 'u1' });
    await api.post('charges', { ...charge, scope: 'u2' });
    expect(transport.keys).toHaveLength(2);
  });

  it('gives guests a scope of the device that stays', async () => {
    const backing = memoryBacking();
    const first = bench([created()], { backing, scope: deviceScope });
    const second = bench([created()], { backing, scope: deviceScope });
    await first.api.post('charges', charge);
    await second.api.post('charges', charge);
    expect(second.transport.seen).toHaveLength(0);
    const operations = [];
    for await (const operation of second.api.operations.list()) operations.push(operation);
    expect(operations).toHaveLength(1);
  });
});

describe('rule 3: derived keys', () => {
  const keyOf = async (options: BenchOptions, name = 'o', scope = 'acct_1'): Promise<string | null | undefined> => {
    const { api, transport } = bench([created()], options);
    await api.post('charges', { operation: name, scope, json: {} });
    return transport.keys[0];
  };

  it('are equal in every store for client, scope, name and namespace, and differ where one of them does', async () => {
    const base = await keyOf({});
    expect(await keyOf({})).toBe(base);
    const others = [await keyOf({}, 'p'), await keyOf({}, 'o', 'acct_2'), await keyOf({ name: 'another' }), await keyOf({ namespace: 'elsewhere' })];
    expect(new Set([base, ...others]).size).toBe(5);
    expect(await keyOf({}, 'b', 'a:')).not.toBe(await keyOf({}, ':b', 'a'));
  });

  it('can be turned off', async () => {
    expect(await keyOf({ keyStrategy: 'random' })).not.toBe(await keyOf({ keyStrategy: 'random' }));
  });
});

describe('rule 4: anonymous operations', () => {
  it('are cancelled when their caller is gone and they had no effect; kept and listed when they may have had one', async () => {
    const { api } = bench([new Response(null, { status: 429 })], { retry: 0 });
    expect(await failure(api.post('charges', { json: {} }))).toMatchObject({ code: 'OPERATION_PENDING', operation: { state: 'cancelled' } });
    const { api: second, transport, clock } = bench([networkError(), created()], { retry: 0 });
    await failure(second.post('charges', { json: {} }));
    clock.shift(60_000);
    expect((await second.operations.resume()).anonymous).toHaveLength(1);
    expect(transport.seen).toHaveLength(1);
    expect((await second.operations.resume({ anonymous: true })).succeeded).toHaveLength(1);
    expect(transport.keys).toHaveLength(1);
  });

  it('come in doubt when a pass finds their window over, without their body, and are purged with a word after nameRetention', async () => {
    const reasons: string[] = [];
    const { api, clock, backing } = bench([networkError()], { retry: 0, nameRetention: 2 * 86_400_000, on: { inDoubt: ({ reason }) => reasons.push(reason) } });
    await failure(api.post('charges', { json: { secret: 1 } }));
    clock.shift(86_400_000);
    expect((await api.operations.resume()).inDoubt).toHaveLength(1);
    expect([...backing.heads.values()]).toMatchObject([{ request: null, snapshot: undefined }]);
    clock.shift(86_400_001);
    await api.operations.resume();
    expect(backing.heads.size).toBe(0);
    expect(reasons).toEqual(['key-window', 'purged']);
  });

  it('refuses mode no-cors, whose answers nobody may read', async () => {
    const { api, transport } = bench([created()]);
    expect((await failure(api.fetch(`${ORIGIN}/charges`, { method: 'POST', mode: 'no-cors', body: '{}' }))).message).toContain('no-cors');
    expect(transport.seen).toHaveLength(0);
  });

  it('one ky call is one operation, also when a hook forces ky to retry it', async () => {
    let refreshed = 0;
    const { api, transport } = bench([new Response(null, { status: 401 }), created()], {
      hooks: { afterResponse: [({ response }) => (response.status === 401 && refreshed++ === 0 ? (createClientRetry() as never) : undefined)] },
    });
    const createClientRetry = () => api.retry({ delay: 0 });
    expect(await api.post('charges', { json: {} }).json()).toEqual({ id: 'ch_1' });
    expect(transport.seen).toHaveLength(2);
    expect(transport.keys).toHaveLength(1);
  });
});

describe('rule 5: what an answer proves', () => {
  it('does not settle on half an answer, and resends with the same key', async () => {
    const half = (): Response => new Response(new ReadableStream({ start: controller => (controller.enqueue(new TextEncoder().encode('{"id":')), controller.error(new Error('cut'))) }), { status: 201, headers: { 'content-type': 'application/json' } });
    const { api, transport } = bench([half, created()]);
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect(transport.keys).toHaveLength(1);
    const { api: doubtful } = bench([half, storedRefusal]);
    expect(await failure(doubtful.post('charges', charge))).toBeInstanceOf(InDoubtError);
  });

  it('takes unparsable JSON for damage once, and for the answer when it comes again', async () => {
    const garbled = (): Response => new Response('{"id":', { status: 201, headers: { 'content-type': 'application/json' } });
    const { api, transport } = bench([garbled]);
    expect(await api.post('charges', charge).text()).toBe('{"id":');
    expect(transport.seen).toHaveLength(2);
  });

  it('a refusal behind a lost answer is in doubt, carries the answer and names the ways out', async () => {
    const { api } = bench([networkError(), refusal]);
    const error = await failure(api.post('charges', charge));
    expect(error).toBeInstanceOf(InDoubtError);
    expect(error.message).toMatch(/storedRefusals.*Idempotency-Status.*onInDoubt/s);
    expect(await (error['response'] as Response).json()).toEqual({ error: 'declined' });
  });

  it.each<[string, BenchOptions, Step]>([
    ['by Idempotency-Status', {}, storedRefusal],
    ['by a replay marker', {}, new Response('{}', { status: 402, headers: { 'idempotent-replayed': 'true' } })],
    ['by storedRefusals (statuses)', { storedRefusals: [402] }, refusal],
    ['by storedRefusals (function)', { storedRefusals: response => response.status === 402 }, refusal],
    ['by accept', { accept: response => (response.status === 402 ? 'stored-rejection' : undefined) }, refusal],
  ])('a refusal that is stored %s is final behind a lost answer', async (_, options, step) => {
    const { api } = bench([networkError(), step], options);
    expect(await failure(api.post('charges', charge))).toMatchObject({ name: 'HTTPError', response: { status: 402 } });
    expect(await api.operations.get('o')).toMatchObject({ state: 'rejected' });
  });

  it('a refusal that came with 200 is an HTTPError for the verbs, now and from the store, and the 200 as it came for fetch', async () => {
    const { graphqlAccept } = await import('../../src/graphql.js');
    const refused = (): Response => Response.json({ data: null, errors: [{ message: 'no' }] });
    const { api, transport } = bench([refused], { accept: graphqlAccept });
    for (let time = 0; time < 2; time += 1) expect(await failure(api.post('graphql', charge))).toMatchObject({ name: 'HTTPError', data: { errors: [{ message: 'no' }] } });
    expect(transport.seen).toHaveLength(1);
    const response = await api.fetch(`${ORIGIN}/graphql`, { method: 'POST', body: '{}' });
    expect([response.status, response.ok, operationOf(response)?.state]).toEqual([200, true, 'rejected']);
  });

  it('an answer that the server does not keep any more settles, and is omitted, not empty', async () => {
    const { api } = bench([networkError(), problem(409, 'idempotency_result_unavailable', { original_status: 201, safe_new_key: false })]);
    const error = await failure(api.post('charges', charge));
    expect(error).toBeInstanceOf(AnswerOmittedError);
    expect(error).toMatchObject({ state: 'succeeded', status: 201 });
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(AnswerOmittedError);
  });

  it('asks for credentials once more on a 401, with the same key and bytes', async () => {
    let token = 0;
    const { api, transport } = bench([networkError(), new Response(null, { status: 401 }), created()], { authorize: () => ({ authorization: `Bearer ${(token += 1)}` }) });
    await api.post('charges', charge);
    expect(transport.seen.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer 1', 'Bearer 2', 'Bearer 3']);
    expect(transport.keys).toHaveLength(1);
  });

  it('parks behind a lost answer when it is not admitted; the next call of the name goes on', async () => {
    const { api, transport } = bench([networkError(), new Response(null, { status: 401 }), created()]);
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'OPERATION_PENDING', response: { status: 401 } });
    expect((await api.operations.resume()).parked).toHaveLength(1);
    await api.post('charges', charge);
    expect(transport.keys).toHaveLength(1);
  });

  it('follows 307 on the same origin with key and bytes, and parks every other redirect', async () => {
    const { api, transport } = bench([new Response(null, { status: 307, headers: { location: '/v2/charges' } }), created()]);
    await api.post('charges', charge);
    expect(transport.seen.map(({ url, text, key }) => [url, text, key])).toEqual([[`${ORIGIN}/charges`, '{"amount":1}', transport.keys[0]], [`${ORIGIN}/v2/charges`, '{"amount":1}', transport.keys[0]]]);
    const away = bench([new Response(null, { status: 307, headers: { location: 'https://evil.test/' } })]);
    const error = await failure(away.api.post('charges', charge));
    expect(error).toBeInstanceOf(RedirectedError);
    expect(error).toMatchObject({ location: 'https://evil.test/' });
    expect(away.transport.seen).toHaveLength(1);
  });

  it('in the profile of Stripe a stored 500 is in doubt and key reuse comes as 400', async () => {
    const { stripe } = await import('../../src/profiles/stripe.js');
    const replayed = Response.json({ error: { type: 'api_error' } }, { status: 500, headers: { 'idempotent-replayed': 'true', 'stripe-should-retry': 'false' } });
    const { api } = bench([networkError(), replayed], { profile: stripe });
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(InDoubtError);
    const reused = Response.json({ error: { type: 'idempotency_error' } }, { status: 400 });
    expect(await failure(bench([reused], { profile: stripe }).api.post('charges', charge))).toBeInstanceOf(KeyReusedError);
  });
});

describe('rule 6: a new key only when the old one is spent on a refusal', () => {
  const reused = (safe: boolean | undefined): Response => problem(422, 'idempotency_key_reused', safe === undefined ? {} : { safe_new_key: safe });

  it.each<[string, BenchOptions, boolean | undefined, string]>([
    ['that says a new key is safe', {}, true, 'next key'],
    ['that says nothing, for a derived key', {}, undefined, 'KeyReusedError'],
    ['that says nothing, for a random key that never left', { keyStrategy: 'random' }, undefined, 'next key'],
    ['that forbids a new key, for a derived key', {}, false, 'KeyReusedError'],
  ])('a corrected body that meets key reuse %s', async (_, options, safe, expected) => {
    const { api, transport } = bench([refusal, reused(safe), created()], options);
    await failure(api.post('charges', charge));
    const outcome = await api.post('charges', other).then(() => 'next key', (error: Error) => error.name);
    expect(outcome).toBe(expected);
    expect(transport.keys).toHaveLength(expected === 'next key' ? 2 : 1);
    expect(transport.seen[1]?.key).toBe(transport.seen[0]?.key);
  });

  it('Stripe: a declined card and then another one is paid under the next key', async () => {
    const { stripe } = await import('../../src/profiles/stripe.js');
    const declined = Response.json({ error: { type: 'card_error', code: 'card_declined' } }, { status: 402 });
    const { api, transport } = bench([declined, created()], { profile: stripe });
    expect(await failure(api.post('charges', charge))).toMatchObject({ response: { status: 402 } });
    expect(await api.post('charges', other).json()).toEqual({ id: 'ch_1' });
    expect(transport.keys).toHaveLength(2);
  });

  it('never replaces a key that the caller chose', async () => {
    const { api, transport } = bench([storedRefusal, created()]);
    const headers = { 'idempotency-key': 'mine' };
    await failure(api.post('charges', { ...charge, headers }));
    expect(await failure(api.post('charges', { ...other, headers }))).toBeInstanceOf(KeyReusedError);
    expect(transport.seen).toHaveLength(1);
  });

  it('key reuse on a first body is in doubt, whatever the server says of new keys', async () => {
    const { api, transport } = bench([reused(true)]);
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(KeyReusedError);
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(KeyReusedError);
    expect(transport.seen).toHaveLength(1);
  });
});

describe('rule 7: fences', () => {
  it('a driver that was taken over drops its failure and tells what the record says; its late success for a refused name is raised', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const conflicts: unknown[] = [];
    let release: (response: Response) => void = () => undefined;
    const stale = bench([() => new Promise<Response>(resolve => (release = resolve))], { backing, clock, timeout: false, totalTimeout: false, on: { conflict: event => conflicts.push(event.status) } });
    const first = failure(stale.api.post('charges', charge));
    await settleDown();
    backing.owners.clear();
    const fresh = bench([storedRefusal], { backing, clock });
    expect(await failure(fresh.api.post('charges', charge))).toMatchObject({ response: { status: 402 } });
    release(created());
    expect(await first).toMatchObject({ name: 'HTTPError', response: { status: 402 } });
    expect(conflicts).toEqual([201]);
    expect(headOf(backing)).toMatchObject({ state: 'rejected', lateStatus: 201 });
  });

  it('a success counts from any holder, also for an operation in doubt', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    let release: (response: Response) => void = () => undefined;
    const stale = bench([() => new Promise<Response>(resolve => (release = resolve))], { backing, clock, timeout: false, totalTimeout: false });
    const first = stale.api.post('charges', charge).json();
    await settleDown();
    await stale.api.operations.cancel('o');
    expect(headOf(backing).state).toBe('in_doubt');
    release(created());
    expect(await first).toEqual({ id: 'ch_1' });
    expect(headOf(backing).state).toBe('succeeded');
  });

  it('renews its lease while a request is out', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const slow = bench(['hang'], { backing, clock, timeout: false, totalTimeout: false, lease: 3_000 });
    void slow.api.post('charges', charge).catch(() => undefined);
    await settleDown();
    await clock.advance(30_000);
    const second = bench([created()], { backing, clock, lease: 3_000 });
    expect((await second.api.operations.resume()).busy).toHaveLength(1);
    expect(headOf(backing).lease?.until).toBeGreaterThan(clock.now());
  });
});

describe('rule 9: scope and credentials', () => {
  it('keeps credentials out of the store and out of answers', async () => {
    const { api, backing } = bench([new Response('{}', { status: 201, headers: { 'set-cookie': 'session=SECRET' } })], { authorize: () => ({ authorization: 'Bearer SECRET' }), secretHeaders: ['X-Token'] });
    await api.post('charges', { ...charge, headers: { cookie: 'SECRET', 'x-token': 'SECRET', 'x-api-key': 'SECRET', 'proxy-authorization': 'SECRET', 'x-shop': 'kept' } });
    expect(JSON.stringify([...backing.heads.values()])).not.toContain('SECRET');
  });

  it('sends the credentials of a call on its attempts, and those of authorize over them', async () => {
    const { api, transport } = bench([busy, created()]);
    await api.post('charges', { ...charge, headers: { authorization: 'Bearer call', 'x-shop': 's' } });
    expect(transport.seen.map(({ headers }) => [headers.get('authorization'), headers.get('x-shop')])).toEqual([['Bearer call', 's'], ['Bearer call', 's']]);
  });

  it('C16: leaves the operations of another scope alone and reports them', async () => {
    const backing = memoryBacking();
    const foreign: unknown[] = [];
    const a = bench([networkError()], { backing, retry: 0, scope: 'A' });
    await failure(a.api.post('charges', charge));
    await a.api.close();
    const clock = virtualClock({ start: a.clock.now() + 60_000 });
    const b = bench([created()], { backing, scope: 'B', clock, on: { foreign: event => foreign.push(event.operation.scope) } });
    expect((await b.api.operations.resume()).foreign).toMatchObject([{ scope: 'A', state: 'pending' }]);
    expect(foreign).toEqual(['A']);
    expect(b.transport.seen).toHaveLength(0);
    const again = bench([created()], { backing, scope: 'A', clock });
    expect((await again.api.operations.resume()).succeeded).toHaveLength(1);
  });

  it('sends nothing when the owner changed while credentials were asked for', async () => {
    let user = 'A';
    const { api, transport, backing } = bench([created()], { scope: () => user, authorize: () => ((user = 'B'), { authorization: 'x' }) });
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(ForeignScopeError);
    expect(transport.seen).toHaveLength(0);
    expect(headOf(backing)).toMatchObject({ scope: 'A', state: 'pending', firstSentAt: undefined });
  });

  it('forgets everything of a scope, and reports what was unsettled', async () => {
    const { api, backing } = bench([created(), networkError()], { retry: 0 });
    await api.post('charges', charge);
    await failure(api.post('charges', { ...charge, operation: 'p' }));
    const report = await api.operations.forget({ scope: 'acct_1' });
    expect(report).toMatchObject({ erased: 2, unsettled: [{ name: 'p' }] });
    expect(backing.heads.size).toBe(0);
  });
});

describe('rule 10: only declared origins are protected', () => {
  it('refuses to make a client that knows no origin', () => {
    expect(() => createClient({ keystore: memoryKeyStore() })).toThrow(UndeclaredOriginError);
  });

  it('can be made where there is no IndexedDB and no store was given, and names the stores at the first call', async () => {
    let sent = 0;
    const api = createClient({ prefix: ORIGIN, scope: 's', fetch: () => Promise.resolve(((sent += 1), created())) });
    const error = await failure(api.post('charges', charge));
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/fileKeyStore.*memoryKeyStore/s) });
    expect(sent).toBe(0);
    await api.close();
  });

  it('passes other origins through untouched, and refuses a name there', async () => {
    const { api, transport } = bench([busy]);
    const response = await api.fetch('https://other.test/x', { method: 'POST', body: 'b' });
    expect([response.status, transport.seen.length, transport.keys]).toEqual([503, 1, [null]]);
    expect(await failure(api.fetch('https://other.test/x', { method: 'POST', body: 'b', operation: 'o' }))).toBeInstanceOf(UndeclaredOriginError);
    expect(transport.seen).toHaveLength(1);
  });

  it('leaves GET to ky, with its retries', async () => {
    const { api, transport } = bench([new Response(null, { status: 503, headers: { 'retry-after': '0' } }), Response.json(1)], { retry: { limit: 2, delay: () => 1 } });
    expect(await api.get('things').json()).toBe(1);
    expect(transport.keys).toEqual([null]);
  });

  it('names operations by a function of the request, which can also say no', async () => {
    const { api, transport } = bench([created()], { operation: request => (request.url.endsWith('login') ? false : request.url.endsWith('a') ? 'named' : undefined) });
    await api.post('login', { json: {} });
    await api.post('a', { json: {} });
    expect(transport.seen.map(({ key }) => key !== null)).toEqual([false, true]);
    expect(await api.operations.get('named')).toMatchObject({ state: 'succeeded' });
  });

  it.each([[''], [null], [42]])('refuses %j as a name, instead of making the call anonymous', async name => {
    const { api, transport } = bench([created()]);
    expect((await failure(api.post('charges', { operation: name as string, json: {} }))).message).toMatch(/not empty/);
    expect(transport.seen).toHaveLength(0);
  });

  it('refuses a factory in place of a store', () => {
    expect(() => createClient({ prefix: ORIGIN, keystore: memoryKeyStore as never })).toThrow(/Call the factory/);
  });

  it('refuses names as defaults, and retry options that would decide against the profile', () => {
    expect(() => bench([], { operation: 'o' as never })).toThrow(/every call the same operation/);
    const { api } = bench([]);
    expect(() => api.extend({ operation: 'o' })).toThrow(/every call the same operation/);
    expect(() => bench([], { retry: { statusCodes: [500] } })).toThrow(/profile decides/);
    expect(() => bench([], { retry: { statusCodes: [500], methods: ['get'] } })).not.toThrow();
  });
});

describe('rule 11: aborts', () => {
  it('an aborted signal begins nothing', async () => {
    const { api, transport, backing } = bench([created()]);
    const reason = new Error('before');
    expect(await failure(api.post('charges', { ...charge, signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect([transport.seen.length, backing.heads.size]).toEqual([0, 0]);
  });
});

describe('rule 12: nothing is lost', () => {
  it('drops answers first and keeps the tombstones of names; anonymous operations go whole', async () => {
    const { api, clock, backing, transport } = bench([created()], { retention: 1_000, nameRetention: 200_000_000 });
    await api.post('charges', charge);
    await api.post('charges', { json: {} });
    clock.shift(1_001);
    await api.operations.resume();
    expect([...backing.heads.values()]).toMatchObject([{ state: 'succeeded', response: null, answer: { status: 201, omitted: 'expired' } }]);
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(AnswerOmittedError);
    clock.shift(200_000_000);
    await api.operations.resume();
    expect(backing.heads.size).toBe(0);
    expect(transport.seen).toHaveLength(2);
  });

  it('gives a long answer to its caller, and keeps that it was there', async () => {
    const { api } = bench([() => new Response('x'.repeat(2_000), { status: 201 })], { maxAnswerBytes: 1_000 });
    expect((await api.post('charges', charge).text()).length).toBe(2_000);
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'ANSWER_OMITTED', status: 201 });
  });

  it('refuses to begin more than maxUnsettled operations', async () => {
    const { api, transport } = bench([networkError()], { retry: 0, maxUnsettled: 3 });
    for (let at = 0; at < 3; at += 1) await failure(api.post('charges', { ...charge, operation: `o${at}` }));
    expect(await failure(api.post('charges', { ...charge, operation: 'o3' }))).toBeInstanceOf(StoreFullError);
    expect(transport.seen).toHaveLength(3);
  });

  it('leaves an unreadable record alone until a person says what became of it', async () => {
    const backing = memoryBacking();
    const first = bench([networkError()], { backing, retry: 0 });
    await failure(first.api.post('charges', charge));
    const [place, head] = [...backing.heads][0] as [string, Head];
    const broken = { client: head.client, scope: head.scope, id: head.id, version: head.version, shelf: head.shelf, due: head.due, writtenAt: head.writtenAt, format: 1, request: null, response: null, unreadable: 'bad JSON' };
    backing.heads.set(place, broken);
    backing.shelves.open[0] = broken;
    const { api, transport } = bench([created()], { backing });
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'STORE_CORRUPT', message: expect.stringContaining('operations.reconcile') });
    expect((await api.operations.resume()).quarantined).toHaveLength(1);
    expect(await api.operations.reconcile('o', 'applied')).toMatchObject({ state: 'succeeded' });
    expect(transport.seen).toHaveLength(0);
  });

  it('leaves a record of a newer version alone', async () => {
    const backing = memoryBacking();
    await failure(bench([networkError()], { backing, retry: 0 }).api.post('charges', charge));
    const [place, head] = [...backing.heads][0] as [string, Head];
    const newer = { ...head, format: 99 };
    backing.heads.set(place, newer);
    backing.shelves.open[0] = newer;
    const { api, transport } = bench([created()], { backing });
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'STORE_CORRUPT', message: expect.stringContaining('format 99') });
    await api.operations.resume();
    expect(transport.seen).toHaveLength(0);
    expect(backing.heads.get(place)).toBe(newer);
  });

  it('does not send stored bytes that are not what was fingerprinted', async () => {
    const backing = memoryBacking();
    const first = bench([networkError()], { backing, retry: 0 });
    await failure(first.api.post('charges', charge));
    await first.api.close();
    const head = headOf(backing);
    new Uint8Array(head.request as ArrayBuffer)[3] = 0x7a;
    const { api, transport } = bench([created()], { backing, clock: virtualClock({ start: first.clock.now() + 60_000 }) });
    expect((await api.operations.resume()).quarantined).toMatchObject([{ state: 'in_doubt' }]);
    expect(transport.seen).toHaveLength(0);
  });
});

describe('rule 13: bookkeeping failure is not send failure', () => {
  it('gives the answer that is in hand, says that it is not recorded, and does not free the name', async () => {
    const memory = memoryKeyStore();
    let failing = false;
    const keystore = { ...memory, info: memory.info, commit: ((writes, durability) => (failing ? Promise.reject(new Error('disk full')) : memory.commit(writes, durability))) as typeof memory.commit };
    const { api, transport } = bench([() => ((failing = true), created()), () => created('replayed')], { keystore });
    const response = await api.post('charges', charge);
    expect(operationOf(response)).toMatchObject({ state: 'succeeded', durable: false });
    failing = false;
    expect(await api.operations.get('o')).toMatchObject({ state: 'pending' });
    await api.post('charges', charge);
    expect(transport.keys).toHaveLength(1);
  });
});

describe('rule 14: exits from doubt', () => {
  it.each<[string, 'applied' | 'unknown' | Response, string]>([
    ['applied', 'applied', 'AnswerOmittedError'],
    ['unknown', 'unknown', 'InDoubtError'],
    ['the answer itself', Response.json({ id: 'found' }), 'found'],
  ])('onInDoubt says %s', async (_, verdict, expected) => {
    const { api } = bench([networkError(), refusal], { onInDoubt: () => verdict });
    expect(await api.post('charges', charge).json<{ id: string }>().then(({ id }) => id, (error: Error) => error.name)).toBe(expected);
  });

  it('"not applied" counts only once the server cannot be at work any more, and then the next key is used', async () => {
    const { api, clock, transport } = bench([networkError(), refusal, created()], { maxServerTime: 60_000, onInDoubt: () => 'not-applied' });
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(InDoubtError);
    expect(await failure(api.operations.reconcile('o', 'not-applied'))).toMatchObject({ code: 'TOO_EARLY' });
    clock.shift(60_000);
    expect((await api.operations.resume()).rejected).toHaveLength(1);
    await api.post('charges', charge);
    expect(transport.keys).toHaveLength(2);
  });

  it('cancel: never sent is cancelled, maybe sent is in doubt', async () => {
    const { api } = bench([networkError('ECONNREFUSED'), networkError()], { retry: 0 });
    await failure(api.post('charges', charge));
    expect(await api.operations.cancel('o')).toMatchObject({ state: 'cancelled' });
    await failure(api.post('charges', { ...charge, operation: 'p' }));
    expect(await api.operations.cancel('p')).toMatchObject({ state: 'in_doubt' });
  });
});

describe('the surface', () => {
  it('fetch gives the last Response of a pending operation with its state; verbs throw', async () => {
    const { api } = bench([busy], { retry: 1 });
    const response = await api.fetch(`${ORIGIN}/charges`, { method: 'POST', body: '{}' });
    expect([response.status, response.headers.get('samekey-state'), await response.text()]).toEqual([503, 'pending', 'busy']);
    expect(await failure(api.post('charges', charge))).toBeInstanceOf(OperationPendingError);
    const none = bench([networkError()], { retry: 0 });
    expect(await failure(none.api.fetch(`${ORIGIN}/charges`, { method: 'POST', body: '{}' }))).toMatchObject({ code: 'OPERATION_PENDING', cause: { message: 'fetch failed' } });
  });

  it('result re-attaches: it waits for whoever drives, and rejects when nobody does or there is nothing', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const first = bench([async () => (await clock.sleep(1_000), created())], { backing, clock });
    const second = bench([], { backing, clock });
    void first.api.post('charges', charge);
    await settleDown();
    const here = first.api.operations.result('o');
    const there = second.api.operations.result('o');
    await clock.advance(3_000);
    expect([await (await here).json(), await (await there).json()]).toEqual([{ id: 'ch_1' }, { id: 'ch_1' }]);
    expect(await failure(second.api.operations.result('nothing'))).toMatchObject({ code: 'NO_SUCH_OPERATION' });
    const idle = bench([networkError()], { retry: 0 });
    await failure(idle.api.post('charges', charge));
    expect(await failure(idle.api.operations.result('o'))).toBeInstanceOf(OperationPendingError);
  });

  it('gives to every attempt what the caller gave to fetch: a dispatcher, a cache mode', async () => {
    const inits: (RequestInit | undefined)[] = [];
    const steps = [busy, created()];
    const fetch = async (_: Request, init?: RequestInit): Promise<Response> => (inits.push(init), (steps.shift() ?? created()).clone());
    const { api } = bench([], { fetch });
    const dispatcher = { agent: true };
    await api.fetch(`${ORIGIN}/charges`, { method: 'POST', body: '{}', dispatcher, keepalive: true } as RequestInit);
    await api.post('charges', { json: {}, cache: 'no-store', dispatcher } as object);
    expect(inits).toEqual([{ dispatcher, keepalive: true }, { dispatcher, keepalive: true }, { dispatcher, cache: 'no-store' }]);
  });

  it('says what happened when the time is over while a request is out', async () => {
    const { api } = bench(['hang'], { totalTimeout: 1_000 });
    const error = await failure(api.post('charges', charge));
    expect(error.message).toContain('it may have been sent, and no answer is known');
    expect(error).toMatchObject({ phase: 'unknown' });
    const refused = bench([networkError('ECONNREFUSED')], { retry: 0 });
    expect((await failure(refused.api.post('charges', charge))).message).toContain('ECONNREFUSED');
  });

  it('reconcile and cancel say when there is nothing to decide', async () => {
    const { api } = bench([created()]);
    await api.post('charges', charge);
    for (const verdict of ['applied', 'not-applied'] as const) expect(await failure(api.operations.reconcile('o', verdict))).toMatchObject({ code: 'NOT_POSSIBLE', message: expect.stringContaining('succeeded') });
    expect(await failure(api.operations.cancel('o'))).toMatchObject({ code: 'NOT_POSSIBLE' });
    expect(await failure(api.operations.reconcile('o', 'yes' as never))).toBeInstanceOf(TypeError);
    expect(await api.operations.get('o')).toMatchObject({ state: 'succeeded' });
  });

  it('finds operations by name, generation and key', async () => {
    const { api, transport } = bench([storedRefusal, created()]);
    await failure(api.post('charges', charge));
    await api.post('charges', other);
    const [first, second] = transport.keys as [string, string];
    expect(await api.operations.get({ name: 'o', generation: 1 })).toMatchObject({ key: first, state: 'rejected', generation: 1 });
    expect(await api.operations.get({ key: second })).toMatchObject({ name: 'o', generation: 2, state: 'succeeded' });
    expect(await api.operations.get({ key: 'none' })).toBeUndefined();
  });

  it('tells the operation of a call, a Response and every kind of error', async () => {
    const { api } = bench([refusal]);
    const call = api.post('charges', charge);
    expect(operationOf(call)).toBeUndefined();
    const error = await failure(call);
    expect(error.name).toBe('HTTPError');
    expect(operationOf(error)).toMatchObject({ name: 'o', state: 'rejected', attempts: 1 });
    expect(operationOf(call)).toEqual(operationOf(error));
    expect(operationOf(new Error('other'))).toBeUndefined();
  });

  it('a listener that throws changes nothing', async () => {
    const boom = (): never => {
      throw new Error('listener');
    };
    const { api } = bench([busy, created()], { on: { attempt: boom, retry: boom, settled: boom } });
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
  });

  it('close ends what is under way without forgetting it', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const { api } = bench(['hang'], { backing, clock });
    const call = failure(api.post('charges', charge));
    await settleDown();
    const closed = api.close();
    expect(await call).toMatchObject({ code: 'OPERATION_PENDING' });
    await closed;
    expect(headOf(backing)).toMatchObject({ state: 'pending', ambiguous: true, lease: undefined });
  });

  it('extend keeps store and operations, and changes ky defaults', async () => {
    const { api, transport } = bench([created()]);
    const v2 = api.extend({ headers: { 'x-version': '2' } });
    await v2.post('charges', charge);
    await api.post('charges', charge);
    expect(transport.seen).toHaveLength(1);
    expect(transport.seen[0]?.headers.get('x-version')).toBe('2');
  });

  it('start resumes by itself, and again when something is due', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const first = bench([networkError()], { backing, clock, retry: 0 });
    await failure(first.api.post('charges', charge));
    const second = bench([busy, created()], { backing, clock, retry: 0 });
    const runner = second.api.operations.start();
    await clock.advance(60_000);
    await runner.stop();
    expect(headOf(backing).state).toBe('succeeded');
    expect(second.transport.seen).toHaveLength(2);
  });
});
