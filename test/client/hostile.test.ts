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
