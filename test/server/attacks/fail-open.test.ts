import { describe, expect, it } from 'vitest';
import type { DedupStore, HandlerContext } from '../../../src/server/index.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';
import { manualClock } from '../../support/manual-clock.js';
import { bePatient } from '../../support/patience.js';
import { codeOf, endpointOf, gate, hasty, passUntil, type Stage } from '../support/endpoint.js';

bePatient();

const stage = (): Stage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

/** A store that can be told to be down. */
const fragile = (store: DedupStore): { store: DedupStore; fail(error: Error): void } => {
  let failure: Error | undefined;
  const claim: DedupStore['claim'] = async one => {
    if (failure) throw failure;
    return store.claim(one);
  };
  return { store: { ...store, claim }, fail: error => void (failure = error) };
};

const dies = async (_request: Request, context: HandlerContext): Promise<Response> => {
  await context.effectStarted();
  throw new Error('died after its effect');
};

describe('a server that fails open never runs over what it knows of a key', () => {
  it('in doubt, where recover rejects', async () => {
    const failures: unknown[] = [];
    const recover = async (): Promise<never> => Promise.reject(new Error('the provider does not answer'));
    const endpoint = endpointOf(stage(), dies, { failOpen: true, recover, on: { failed: error => failures.push(error) } });
    await endpoint.send({ key: 'k' });
    const again = await endpoint.send({ key: 'k' });
    expect([again.status, await codeOf(again), endpoint.runs]).toEqual([503, 'idempotency_store_unavailable', 1]);
    expect(failures).toEqual([new Error('died after its effect'), new Error('the provider does not answer')]);
  });

  it('in doubt, where the store goes down before the doubt is ended', async () => {
    const { clock, store } = stage();
    const down: DedupStore = { ...store, resolve: () => Promise.reject(new Error('down')) };
    const recover = async () => 'not-applied' as const;
    const endpoint = endpointOf({ clock, store: down }, dies, { failOpen: true, recover });
    await endpoint.send({ key: 'k' });
    expect([(await passUntil(clock, endpoint.send({ key: 'k' }))).status, endpoint.runs]).toEqual([503, 1]);
  });

  it('in progress, where the store goes down while it waits', async () => {
    const { clock, store: whole } = stage();
    const { store, fail } = fragile(whole);
    const [entered, end] = [gate(), gate()];
    const work = async (): Promise<Response> => {
      entered.open();
      await end.opened;
      return new Response('done');
    };
    const endpoint = endpointOf({ clock, store }, work, { failOpen: true, wait: 5000 });
    const first = endpoint.send({ key: 'k' });
    await entered.opened;
    const second = endpoint.send({ key: 'k' });
    await clock.advance(0);
    fail(new Error('down'));
    expect((await passUntil(clock, second)).status).toBe(503);
    end.open();
    expect([await (await first).text(), endpoint.runs]).toEqual(['done', 1]);
  });

  it('whose transaction the database gave up again and again', async () => {
    const { clock, store } = stage();
    const contention = Object.assign(new Error('deadlock'), { code: '40P01' });
    const transact: DedupStore['transact'] = async work => {
      await work({}, store.settle);
      throw new Error('never reached');
    };
    const work = async (_request: Request, context: HandlerContext): Promise<Response> => {
      await context.transaction();
      throw contention;
    };
    const endpoint = endpointOf({ clock, store: { ...store, transact } }, work, { failOpen: true, clock: hasty(clock) });
    expect((await endpoint.send({ key: 'k' })).status).toBe(503);
    const { runs } = endpoint;
    expect((await endpoint.send({ key: 'k' })).status).toBe(503);
    expect(endpoint.runs).toBe(2 * runs);
  });

  it('and runs where it knows nothing of it, and says why', async () => {
    const { clock, store: whole } = stage();
    const { store, fail } = fragile(whole);
    const failures: unknown[] = [];
    const endpoint = endpointOf({ clock, store }, undefined, { failOpen: true, clock: hasty(clock), on: { failed: error => failures.push(error) } });
    fail(new Error('relation "idempotency_keys" does not exist'));
    const response = await endpoint.send({ key: 'k' });
    expect([response.status, response.headers.get('idempotency-status'), failures]).toEqual([201, 'unrecorded', [new Error('relation "idempotency_keys" does not exist')]]);
  });
});

it('a 503 of the store says its cause to those who run the server, and not to the client', async () => {
  const { clock, store: whole } = stage();
  const { store, fail } = fragile(whole);
  const failures: unknown[] = [];
  const endpoint = endpointOf({ clock, store }, undefined, { clock: hasty(clock), on: { failed: (error, call) => failures.push([error, call]) } });
  fail(new Error('password of "shop" is wrong'));
  const response = await endpoint.send({ key: 'k' });
  expect([response.status, endpoint.runs, failures]).toEqual([503, 0, [[new Error('password of "shop" is wrong'), { name: 'charge', key: 'k' }]]]);
  expect(await response.text()).not.toContain('password');
});
