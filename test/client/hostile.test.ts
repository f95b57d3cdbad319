import { describe, expect, it } from 'vitest';
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
