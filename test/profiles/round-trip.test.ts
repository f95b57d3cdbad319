import { http, HttpResponse } from 'msw';
import { setupServer } from 'msw/node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClient, operationOf, type Client, type ClientOptions } from '../../src/index.js';
import { memoryKeyStore } from '../../src/keystore/memory.js';
import { createIdempotencyMock, type IdempotencyMock } from '../../src/msw/index.js';
import type { Profile } from '../../src/profiles/index.js';
import { failure } from '../client/setup.js';
import { manualClock, type ManualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { gate, keyOf, PROFILES } from './support.js';

bePatient();

const network = setupServer();
beforeAll(() => network.listen({ onUnhandledFrame: 'error' }));
afterEach(() => network.resetHandlers());
afterAll(() => network.close());

interface Shop {
  readonly mock: IdempotencyMock;
  readonly clock: ManualClock;
  /** A client with a store of its own: another device. */
  client(options?: ClientOptions): Client;
}

type Answer = (run: number) => Response | Promise<Response>;

const charged: Answer = run => HttpResponse.json({ charges: { id: `CH${run}` } }, { status: 201 });

const answersOf = (runs: number): Record<string, unknown> => ({ charges: { id: `CH${runs}` } });

/** A mock of a provider, the resource that it makes, and clients of it. Its clock begins with the machine's, because one dialect compares both. */
const shopOf = (profile: Profile, answer: Answer = charged): Shop => {
  const clock = manualClock(Date.now());
  const mock = createIdempotencyMock({ profile, clock });
  let runs = 0;
  network.use(
    http.post('https://api.test/charges', mock.idempotent(() => answer((runs += 1)) as never, { name: 'charge' })),
    http.get('https://api.test/charges/:id', ({ params }) => HttpResponse.json({ charges: { id: params['id'] } })),
  );
  const quick = { limit: 5, delay: () => 1, maxRetryAfter: 100 };
  return { mock, clock, client: options => createClient({ prefix: 'https://api.test', keystore: memoryKeyStore(), scope: 'acct_1', profile, retry: quick, ...options }) };
};

const pay = { operation: 'order:1:charge', json: { amount: 4200 } };

/** A request under a key of the caller's own, carried as the dialect has it. */
const adopting = ({ header, bodyField }: Profile, json: object): { readonly json: object; readonly headers?: Record<string, string> } =>
  bodyField ? { json: { ...json, [bodyField.name]: keyOf('mine') } } : { json, headers: { [header ?? '']: keyOf('mine') } };

describe.each(PROFILES)('$name, client and mock', profile => {
  const isConflict = profile.replays === 'conflict';

  it('a lost answer is still one effect, and the caller gets it', async () => {
    const { mock, client } = shopOf(profile);
    mock.fault('charge', 'lose-response');
    const response = await client().post('charges', pay);
    expect(await response.json()).toEqual(answersOf(1));
    expect([mock.executions('charge'), operationOf(response)?.attempts, operationOf(response)?.state]).toEqual([1, 2, 'succeeded']);
    expect(new Set(mock.ledger.map(({ key }) => key))).toEqual(new Set([operationOf(response)?.key]));
  });

  it('a request that meets its first one waits for it', async () => {
    const { opened, open } = gate();
    const { mock, client } = shopOf(profile, run => opened.then(() => charged(run)));
    const first = client().post('charges', adopting(profile, { amount: 4200 }));
    await expect.poll(() => mock.executions('charge')).toBe(1);
    const second = client().post('charges', adopting(profile, { amount: 4200 }));
    await expect.poll(() => mock.ledger.filter(({ kind }) => kind === 'conflict').length).toBeGreaterThan(0);
    open();
    expect([await (await first).json(), await (await second).json()]).toEqual([answersOf(1), answersOf(1)]);
    expect(mock.executions('charge')).toBe(1);
  });

  it('another body under a key in use is in doubt, never a second effect', async () => {
    const { mock, client } = shopOf(profile);
    await client().post('charges', adopting(profile, { amount: 4200 }));
    const error = await failure(client().post('charges', adopting(profile, { amount: 1 })));
    expect(error).toMatchObject({ code: isConflict ? 'IN_DOUBT' : 'KEY_REUSED' });
    expect(mock.executions('charge')).toBe(1);
  });

  it('a failure in between is tried again under the same key', async () => {
    const { mock, client } = shopOf({ ...profile, stores: profile.stores === 'all' ? 'deterministic' : profile.stores }, run => (run === 1 ? HttpResponse.json({}, { status: 503 }) : charged(run)));
    const response = await client().post('charges', pay);
    expect([await response.json(), mock.executions('charge'), operationOf(response)?.attempts]).toEqual([answersOf(2), 2, 2]);
  });

  it('a refusal reaches the caller as one', async () => {
    const { mock, client } = shopOf(profile, () => HttpResponse.json({ error: { type: 'card_error' } }, { status: 402 }));
    expect(await failure(client().post('charges', pay))).toMatchObject({ name: 'HTTPError', response: { status: 402 } });
    expect(mock.executions('charge')).toBe(1);
  });

  it('a key that the server may have forgotten is not sent again', async () => {
    const { mock, client } = shopOf(profile);
    let passed = 0;
    const api = client({ retry: 0, clock: { now: () => Date.now() + passed } });
    mock.fault('charge', 'lose-response');
    expect(await failure(api.post('charges', pay))).toMatchObject({ code: 'OPERATION_PENDING' });
    passed = profile.keyWindow;
    expect(await failure(api.post('charges', pay))).toMatchObject({ code: 'IN_DOUBT', operation: { attempts: 1 } });
    expect(mock.ledger.filter(({ kind }) => kind === 'request')).toHaveLength(1);
  });
});

describe.each(PROFILES.filter(({ expiredKey }) => expiredKey === 'refuse'))('$name, which refuses expired keys', profile => {
  it('a key that the server has forgotten earlier than it promised is in doubt, and no second effect', async () => {
    const { mock, clock, client } = shopOf(profile);
    const api = client({ retry: 0, keyWindow: 86_400_000 });
    mock.fault('charge', 'lose-response');
    expect(await failure(api.post('charges', pay))).toMatchObject({ code: 'OPERATION_PENDING' });
    await clock.advance(profile.keyWindow + 1);
    expect(await failure(api.post('charges', pay))).toMatchObject({ code: 'IN_DOUBT', response: { status: 412 } });
    expect(mock.executions('charge')).toBe(1);
  });
});
