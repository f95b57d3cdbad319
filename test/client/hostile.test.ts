import { describe, expect, it } from 'vitest';
import { operationOf } from '../../src/client.js';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import type { Head } from '../../src/operation.js';
import { networkError } from '../support/transport.js';
import { settleDown, virtualClock } from '../support/virtual-clock.js';
import { bench, created, failure, type Bench } from './setup.js';

const charge = { operation: 'o', json: { amount: 1 } };
const headOf = ({ backing }: Pick<Bench, 'backing'>): Head => [...backing.heads.values()].at(-1) as Head;

/** A network error of Node on a call of the operating system. */
const osError = (code: string, syscall: string): TypeError => new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, syscall }) });

describe('rule 1: what proves that nothing left', () => {
  it('not an error of `accept`, which has an answer before it', async () => {
    const stand = bench([created()], { retry: 0, accept: () => Promise.reject(networkError('ECONNREFUSED')) });
    expect(await failure(stand.api.post('charges', charge))).toMatchObject({ code: 'OPERATION_PENDING', phase: 'unknown' });
    expect(headOf(stand)).toMatchObject({ ambiguous: true, firstSentAt: expect.any(Number) as number });
  });

  it.each([['connect', false], ['read', true], ['write', true]])('an unreachable host at %s: maybe sent is %s', async (syscall, maybeSent) => {
    const stand = bench([osError('EHOSTUNREACH', syscall)], { retry: 0 });
    await failure(stand.api.post('charges', charge));
    expect(headOf(stand).ambiguous).toBe(maybeSent);
    expect(headOf(stand).firstSentAt !== undefined).toBe(maybeSent);
  });

  it('a chain of causes that leads back to itself ends', async () => {
    const circular = new Error('circular');
    circular.cause = circular;
    const { api } = bench([circular, created()]);
    expect((await api.post('charges', charge)).status).toBe(201);
  });
});

describe('rule 7: before every resend the record is asked', () => {
  it('a cancel during a pause ends the resends (rule 14)', async () => {
    const clock = virtualClock({ auto: false });
    const stand = bench([networkError(), created()], { clock });
    const told = failure(stand.api.post('charges', charge));
    await settleDown();
    expect(stand.transport.seen).toHaveLength(1);
    await stand.api.operations.cancel('o');
    await clock.advance(20_000);
    expect(await told).toMatchObject({ code: 'IN_DOUBT' });
    expect(stand.transport.seen).toHaveLength(1);
  });

  it('a store that fails then does not make a sent operation an unsent one', async () => {
    const backing = memoryBacking();
    const memory = memoryKeyStore({ backing });
    let down = false;
    const keystore = { ...memory, commit: ((writes, durability) => (down ? Promise.reject(new Error('disk gone')) : memory.commit(writes, durability))) as typeof memory.commit };
    const busy = (): Response => {
      down = true;
      return new Response(null, { status: 503, headers: { 'retry-after': '10' } });
    };
    const { api } = bench([busy], { backing, keystore });
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'OPERATION_PENDING', phase: 'unknown', response: { status: 503 } });
  });
});

describe('what the application answers late or never', () => {
  it('an authorize that hangs costs one timeout, keeps the operation unsent, and holds up neither the next call nor close', async () => {
    let hanging = true;
    const authorize = (): HeadersInit | Promise<HeadersInit> => (hanging ? new Promise<HeadersInit>(() => undefined) : {});
    const stand = bench([created()], { authorize });
    expect(await failure(stand.api.post('charges', charge))).toMatchObject({ name: 'TimeoutError' });
    expect(headOf(stand)).toMatchObject({ state: 'pending', firstSentAt: undefined, lease: undefined });
    hanging = false;
    expect((await stand.api.post('charges', charge)).status).toBe(201);
    await stand.api.close();
  });

  const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

  it('a scope or a body that never comes costs totalTimeout at most, an abort ends the waiting, and nothing is begun', async () => {
    const stand = bench([created()], { scope: never, totalTimeout: 1_000 });
    expect(await failure(stand.api.post('charges', charge))).toMatchObject({ name: 'TimeoutError' });
    expect(await failure(stand.api.post('charges', { body: new ReadableStream() }))).toMatchObject({ name: 'TimeoutError' });
    const still = bench([created()], { scope: never, clock: virtualClock({ auto: false }) });
    const abort = new AbortController();
    const reason = new Error('left the page');
    const told = failure(still.api.post('charges', { ...charge, signal: abort.signal }));
    await settleDown(1);
    abort.abort(reason);
    expect(await told).toBe(reason);
    expect([...stand.backing.heads, ...still.backing.heads]).toEqual([]);
  });

  it.each<[string, Parameters<typeof bench>[1]]>([['accept', { accept: never }], ['owns', { owns: never }], ['onInDoubt', { onInDoubt: never }]])('an %s that hangs holds up no close', async (_, options) => {
    const { api } = bench([networkError(), Response.json({}, { status: 400 })], { totalTimeout: 30_000, ...options });
    await failure(api.post('charges', charge));
    await api.close();
  });
});

describe('rule 11: what is not wanted any more', () => {
  it('an abort while the scope is asked for begins nothing', async () => {
    const abort = new AbortController();
    const reason = new Error('left the page');
    const stand = bench([created()], { scope: () => settleDown(3).then(() => 'acct_1') });
    const told = failure(stand.api.post('charges', { ...charge, signal: abort.signal }));
    await settleDown(1);
    abort.abort(reason);
    expect(await told).toBe(reason);
    await settleDown();
    expect(stand.backing.heads.size).toBe(0);
    expect(stand.transport.seen).toHaveLength(0);
  });

  it('a call of a closed client begins nothing', async () => {
    const stand = bench([created()]);
    await stand.api.close();
    expect(await failure(stand.api.post('charges', charge))).toMatchObject({ name: 'AbortError', message: 'The client was closed' });
    expect(stand.backing.heads.size).toBe(0);
  });

  it('a client that is closed twice leaves the store open for the others', async () => {
    const backing = memoryBacking();
    const keystore = memoryKeyStore({ backing });
    const first = bench([created()], { keystore, name: 'first' });
    const second = bench([created()], { keystore, name: 'second' });
    await first.api.post('charges', charge);
    await second.api.post('charges', charge);
    await first.api.close();
    await first.api.close();
    expect(backing.owners.size).toBe(1);
    await second.api.close();
    expect(backing.owners.size).toBe(0);
  });
});

describe('hooks of ky', () => {
  it('an afterResponse hook of a parent can still force a retry in a client that was extended twice', async () => {
    const { api, transport } = bench([created('stale'), created('fresh')]);
    const retrying = api.extend({ hooks: { afterResponse: [({ response, retryCount }) => (retryCount === 0 ? api.retry() : response)] } });
    const extended = retrying.extend({ hooks: { beforeRequest: [({ request }) => request.headers.set('x-trace', '1')] } });
    expect((await extended.post('charges', charge)).status).toBe(201);
    expect(transport.keys).toHaveLength(1);
  });
});

const DAY_MS = 86_400_000;
const storedRefusal = Response.json({ code: 'too_much' }, { status: 422, headers: { 'idempotency-status': 'stored' } });

describe('rule 8: clocks that were wrong', () => {
  it('a first send from a clock that was ahead and was set back is in doubt: nobody can tell how long ago it was', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    clock.shift(3 * DAY_MS);
    const ahead = bench([networkError()], { backing, clock, retry: 0 });
    await failure(ahead.api.post('charges', charge));
    await ahead.api.close();
    clock.shift(-DAY_MS);
    const corrected = bench([created()], { backing, clock });
    expect(await failure(corrected.api.post('charges', charge))).toMatchObject({ code: 'IN_DOUBT' });
    expect(corrected.transport.seen).toHaveLength(0);
  });

  it('and it is in a store that notes the highest time once a second only', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    clock.shift(3 * DAY_MS);
    const ahead = bench([networkError()], { backing, clock, retry: 0 });
    await failure(ahead.api.post('charges', charge));
    await ahead.api.close();
    backing.latest -= 1_000;
    clock.shift(-DAY_MS);
    const corrected = bench([created()], { backing, clock });
    await corrected.api.post('charges', { json: {} });
    await clock.advance(5_000);
    expect(await failure(corrected.api.post('charges', charge))).toMatchObject({ code: 'IN_DOUBT' });
    expect(corrected.transport.seen).toHaveLength(1);
  });

  it('what a process sends itself on such a store is resent: it has seen the time pass', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    clock.shift(3 * DAY_MS);
    const ahead = bench([created()], { backing, clock });
    await ahead.api.post('charges', charge);
    await ahead.api.close();
    clock.shift(-3 * DAY_MS);
    const { api, transport } = bench([networkError(), created()], { backing, clock });
    expect((await api.post('charges', { ...charge, operation: 'another' })).status).toBe(201);
    expect(transport.seen).toHaveLength(2);
  });
});

describe('rule 7: late evidence', () => {
  it('a success for a generation that was refused is kept and raised, also when the next one has succeeded', async () => {
    const backing = memoryBacking();
    const clock = virtualClock({ auto: false });
    const conflicts: unknown[] = [];
    let release: (response: Response) => void = () => undefined;
    const on = { conflict: ({ operation, status }: { operation: { generation: number }; status: number | undefined }) => conflicts.push([operation.generation, status]) };
    const stale = bench([() => new Promise<Response>(resolve => (release = resolve))], { backing, clock, timeout: false, totalTimeout: false, on });
    const first = stale.api.post('charges', charge);
    await settleDown();
    backing.owners.clear();
    const fresh = bench([storedRefusal, created('second')], { backing, clock });
    await failure(fresh.api.post('charges', charge));
    await fresh.api.post('charges', { operation: 'o', json: { amount: 2 } });
    release(created('first'));
    expect(await first.json()).toEqual({ id: 'second' });
    expect(headOf(stale)).toMatchObject({ generation: 2, state: 'succeeded', past: [{ generation: 1, lateStatus: 201 }] });
    expect(conflicts).toEqual([[1, 201]]);
  });
});

describe('rule 9: forget', () => {
  it('while a request is out: its caller gets the answer, and nothing is begun or kept anew', async () => {
    let release: (response: Response) => void = () => undefined;
    const stand = bench([() => new Promise<Response>(resolve => (release = resolve))], { clock: virtualClock({ auto: false }) });
    const call = stand.api.post('charges', charge);
    await settleDown();
    await stand.api.operations.forget({ scope: 'acct_1' });
    release(created());
    expect((await call).status).toBe(201);
    expect(operationOf(call)).toMatchObject({ state: 'succeeded', durable: false });
    expect(stand.backing.heads.size).toBe(0);
    expect(stand.transport.seen).toHaveLength(1);
  });

  it('during a pause: nothing is sent any more', async () => {
    const clock = virtualClock({ auto: false });
    const stand = bench([networkError(), created()], { clock });
    const told = failure(stand.api.post('charges', charge));
    await settleDown();
    await stand.api.operations.forget({ scope: 'acct_1' });
    await clock.advance(20_000);
    expect(await told).toMatchObject({ code: 'CANCELLED', phase: 'unknown' });
    expect(stand.backing.heads.size).toBe(0);
    expect(stand.transport.seen).toHaveLength(1);
  });
});

describe('rule 14: an onInDoubt that throws', () => {
  const refusal = Response.json({}, { status: 400 });
  const boom = new Error('boom');
  const throwing = { onInDoubt: () => Promise.reject(boom) };

  it('leaves the operation in doubt, and is the cause of what the caller hears', async () => {
    const { api } = bench([networkError(), refusal], throwing);
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'IN_DOUBT', cause: boom });
    expect(await failure(api.post('charges', charge))).toMatchObject({ code: 'IN_DOUBT', cause: boom });
  });

  it('keeps no other operation from being resumed', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    const before = bench([networkError(), refusal, networkError()], { backing, clock, retry: 1 });
    await failure(before.api.post('charges', charge));
    await failure(before.api.post('charges', { ...charge, operation: 'pending' }));
    await before.api.close();
    await clock.advance(60_000);
    const after = bench([created()], { backing, clock, ...throwing });
    const report = await after.api.operations.resume();
    expect(report.succeeded.map(({ name }) => name)).toEqual(['pending']);
    expect(report.inDoubt.map(({ name }) => name)).toEqual(['o']);
  });

  it('is asked again when the server must be done, not at every pass', async () => {
    const clock = virtualClock();
    let asked = 0;
    const { api } = bench([networkError(), refusal], { clock, onInDoubt: () => ((asked += 1), 'unknown' as const) });
    await failure(api.post('charges', charge));
    await api.operations.resume();
    await api.operations.resume();
    expect(asked).toBe(1);
    await clock.advance(600_000);
    await api.operations.resume();
    expect(asked).toBe(2);
  });
});

describe('rule 12: tidying', () => {
  const old = { client: 'default', scope: 'acct_1', version: 1, shelf: 'settled', due: 1, writtenAt: 1, format: 1, request: null, response: null } as const;

  it('comes to an end when a whole page of heads cannot be read, and tidies behind them', async () => {
    const backing = memoryBacking();
    const { api } = bench([created()], { backing, retention: 0 });
    await api.post('charges', { json: {} });
    const damaged = Array.from({ length: 100 }, (_, at) => ({ ...old, id: `name:${at}`, unreadable: 'flipped bits' }));
    await memoryKeyStore({ backing }).commit(damaged.map(next => ({ ref: next, expect: 'absent', next })));
    await api.operations.resume();
    expect([...backing.heads.values()].map(({ id }) => id).sort()).toEqual(damaged.map(({ id }) => id).sort());
  });

  it('leaves a settled head of a newer version alone', async () => {
    const backing = memoryBacking();
    const newer = { ...old, id: 'name:newer', format: 99, state: 'succeeded', name: 'newer', answer: { status: 201, statusText: '', url: '', headers: [] } };
    await memoryKeyStore({ backing }).commit([{ ref: newer, expect: 'absent', next: newer }]);
    await bench([created()], { backing }).api.operations.resume();
    expect([...backing.heads.values()]).toEqual([newer]);
  });
});

describe('a pass of resume', () => {
  it('drives what it can before it tells of what it could not look at', async () => {
    const backing = memoryBacking();
    const clock = virtualClock();
    const before = bench([networkError()], { backing, clock, retry: 0 });
    await failure(before.api.post('charges', { ...charge, scope: 'unknown' }));
    await failure(before.api.post('charges', charge));
    await before.api.close();
    await clock.advance(60_000);
    const owns = (scope: string): boolean => {
      if (scope === 'unknown') throw new Error('no such account');
      return true;
    };
    const after = bench([created()], { backing, clock, owns });
    expect(await failure(after.api.operations.resume())).toMatchObject({ message: 'no such account' });
    expect(after.transport.seen).toHaveLength(1);
  });
});

describe('odd text', () => {
  it('a status text that no Response can have costs nobody the answer', async () => {
    const odd = (): Response => Object.defineProperty(created(), 'statusText', { value: 'Geschafft \u2713' });
    const { api } = bench([odd]);
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
  });

  it('half a surrogate pair in a name or a scope is refused, and nothing is sent', async () => {
    const { api, transport } = bench([created()]);
    expect(await failure(api.post('charges', { ...charge, operation: 'o\ud800' }))).toMatchObject({ name: 'TypeError', message: expect.stringContaining('surrogate') as string });
    expect(await failure(api.post('charges', { ...charge, scope: '\udfff' }))).toMatchObject({ name: 'TypeError', message: expect.stringContaining('surrogate') as string });
    expect(transport.seen).toHaveLength(0);
  });
});

it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])('a jitter that gives %d neither rushes nor loses what is recorded', async odd => {
  const stand = bench([networkError()], { retry: { limit: 2, jitter: () => odd } });
  await failure(stand.api.post('charges', charge));
  expect(stand.transport.seen).toHaveLength(3);
  expect(Math.min(...stand.clock.sleeps.filter(ms => ms < 5_000))).toBeGreaterThanOrEqual(100);
  expect(headOf(stand)).toMatchObject({ state: 'pending', attempts: 3, ambiguous: true, lease: undefined });
});

it('an async listener that fails changes nothing, and ends no process', async () => {
  const rejected: unknown[] = [];
  const note = (reason: unknown): void => void rejected.push(reason);
  process.on('unhandledRejection', note);
  // The types ask for no promise; async functions are given all the same.
  const attempt = (): unknown => Promise.reject(new Error('no logs today'));
  const { api } = bench([networkError(), created()], { on: { attempt: attempt as () => void } });
  expect((await api.post('charges', charge)).status).toBe(201);
  await settleDown(3);
  process.off('unhandledRejection', note);
  expect(rejected).toEqual([]);
});

describe('rule 5: a success is none that a verb throws', () => {
  const gone = Response.json({ code: 'not_found' }, { status: 404 });

  it('a DELETE that meets 404 behind a lost answer', async () => {
    const { api } = bench([networkError(), gone]);
    const call = api.delete('charges/1', { operation: 'o' });
    expect((await call).status).toBe(404);
    expect(operationOf(call)).toMatchObject({ state: 'succeeded', assumed: true });
    expect((await api.delete('charges/1', { operation: 'o' })).status).toBe(404);
  });

  it('a visible 303', async () => {
    const { api } = bench([new Response(null, { status: 303, headers: { location: '/charges/1' } })]);
    const response = await api.post('charges', charge);
    expect([response.status, response.headers.get('location')]).toEqual([303, '/charges/1']);
  });

  it('what `accept` calls one; fetch gives it as it came', async () => {
    const { api } = bench([Response.json({ id: 'ch_1' }, { status: 409 })], { accept: () => 'succeeded' });
    expect(await api.post('charges', charge).json()).toEqual({ id: 'ch_1' });
    const response = await api.fetch('https://api.test/charges', { method: 'POST', body: '{}', operation: 'p' });
    expect([response.status, response.ok]).toEqual([409, false]);
  });
});
