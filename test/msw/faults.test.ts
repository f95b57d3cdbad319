import { http, HttpResponse } from 'msw';
import { describe, expect, it } from 'vitest';
import { createIdempotencyMock, type IdempotencyMock, type IdempotentOptions } from '../../src/msw/index.js';
import { manualClock, type ManualClock } from '../support/manual-clock.js';
import { charge, CHARGES, kindsOf, networkError, useServer } from './support.js';

const server = useServer();

const LEASE = 30_000;

interface Scene {
  readonly mock: IdempotencyMock;
  readonly clock: ManualClock;
  /** Lets every resolver that waits come to its end. */
  finish(): void;
  readonly effects: number;
}

/** A charge endpoint; `slow` ones wait until they are told to finish. */
const sceneOf = ({ slow = false, seed = 1, ...endpoint }: { slow?: boolean; seed?: number } & Partial<IdempotentOptions> = {}): Scene => {
  const clock = manualClock();
  const mock = createIdempotencyMock({ clock, seed, lease: LEASE });
  let effects = 0;
  let finish = (): void => {};
  const finished = new Promise<void>(resolve => (finish = resolve));
  const resolver = mock.idempotent(
    async ({ idempotency }) => {
      if (slow) await finished;
      idempotency.signal.throwIfAborted();
      effects += 1;
      return HttpResponse.json({ charge: effects }, { status: 201 });
    },
    { name: 'charge', ...endpoint },
  );
  server.use(http.post(CHARGES, resolver));
  return {
    mock,
    clock,
    finish: () => finish(),
    get effects() {
      return effects;
    },
  };
};

describe('mock.fault', () => {
  it('loses a request: nothing is executed, a repeat runs', async () => {
    const { mock } = sceneOf();
    mock.fault('charge', 'lose-request');
    expect(await networkError(charge())).toBeInstanceOf(TypeError);
    expect(mock.executions('charge')).toBe(0);
    expect([(await charge()).status, mock.executions('charge')]).toEqual([201, 1]);
    expect(kindsOf(mock.ledger)).toEqual(['request', 'fault', 'request', 'claim', 'execution', 'answer']);
  });

  it('59: loses a response after it was stored: executed, and a repeat is a replay', async () => {
    const scene = sceneOf();
    scene.mock.fault('charge', 'lose-response');
    expect(await networkError(charge())).toBeInstanceOf(TypeError);
    const repeat = await charge();
    expect([repeat.headers.get('idempotent-replayed'), await repeat.json(), scene.effects]).toEqual(['true', { charge: 1 }, 1]);
    expect(kindsOf(scene.mock.ledger)).toEqual(['request', 'fault', 'claim', 'execution', 'answer', 'request', 'replay']);
  });

  it('resets a connection while the endpoint works: a quick repeat meets the run, a later one its answer', async () => {
    const scene = sceneOf({ slow: true });
    scene.mock.fault('charge', 'reset');
    expect(await networkError(charge())).toBeInstanceOf(TypeError);
    expect((await charge()).status).toBe(409);
    scene.finish();
    await expect.poll(() => kindsOf(scene.mock.ledger)).toContain('answer');
    expect([(await charge()).headers.get('idempotent-replayed'), scene.effects]).toEqual(['true', 1]);
  });

  it('delays an answer after the effect, or a request before it', async () => {
    const scene = sceneOf();
    for (const [phase, effectsMeanwhile] of [['response', 1], ['request', 1]] as const) {
      scene.mock.fault('charge', 'delay', { ms: 5_000, phase });
      const sent = charge({ key: phase });
      await expect.poll(() => scene.clock.sleeping).toBe(1);
      expect(scene.effects).toBe(effectsMeanwhile);
      await scene.clock.advance(5_000);
      expect((await sent).status).toBe(201);
    }
    expect(scene.effects).toBe(2);
  });

  it('answers with a status instead, before the endpoint or after it', async () => {
    const scene = sceneOf();
    scene.mock.fault('charge', 'status', { status: 503, headers: { 'retry-after': '1' }, body: 'busy' });
    const busy = await charge();
    expect([busy.status, busy.headers.get('retry-after'), await busy.text(), scene.effects]).toEqual([503, '1', 'busy', 0]);
    scene.mock.fault('charge', 'status', { status: 504, phase: 'response' });
    expect([(await charge()).status, scene.effects]).toEqual([504, 1]);
    expect((await charge()).headers.get('idempotent-replayed')).toBe('true');
  });

  it('C99: a client that gives up does not stop the endpoint: effect once, stored, replayed', async () => {
    const scene = sceneOf({ slow: true });
    const client = new AbortController();
    const sent = charge({ signal: client.signal });
    await expect.poll(() => scene.mock.executions()).toBe(1);
    client.abort();
    await expect(sent).rejects.toThrow(/abort/i);
    expect((await charge()).status).toBe(409);
    scene.finish();
    await expect.poll(() => kindsOf(scene.mock.ledger)).toContain('answer');
    expect([(await charge()).headers.get('idempotent-replayed'), scene.effects]).toEqual(['true', 1]);
  });

  it('59, C99: with crash-on-abort the endpoint dies with its client: no effect, its lease stays until time is moved past it, then nobody knows', async () => {
    const scene = sceneOf({ slow: true });
    scene.mock.fault('charge', 'crash-on-abort');
    const client = new AbortController();
    const sent = charge({ signal: client.signal });
    await expect.poll(() => scene.mock.executions()).toBe(1);
    client.abort();
    await expect(sent).rejects.toThrow(/abort/i);
    scene.finish();
    expect((await charge()).status).toBe(409);
    await scene.clock.advance(LEASE + 1);
    expect(await (await charge()).json()).toMatchObject({ code: 'idempotency_indeterminate' });
    expect([scene.effects, kindsOf(scene.mock.ledger).includes('answer')]).toEqual([0, false]);
    expect(await scene.mock.resolve('k', 'not-applied')).toBe(true);
    expect([(await charge()).status, scene.effects]).toEqual([201, 1]);
  });

  it('C99: after such a crash an endpoint with idempotent effects runs again', async () => {
    const scene = sceneOf({ slow: true, effects: 'idempotent' });
    scene.mock.fault('charge', 'crash-on-abort');
    const client = new AbortController();
    const sent = charge({ signal: client.signal });
    await expect.poll(() => scene.mock.executions()).toBe(1);
    client.abort();
    await expect(sent).rejects.toThrow(/abort/i);
    scene.finish();
    await scene.clock.advance(LEASE + 1);
    expect([(await charge()).status, scene.effects, scene.mock.executions()]).toEqual([201, 1, 2]);
  });

  it('answers as usual with crash-on-abort when the client waits', async () => {
    const scene = sceneOf();
    scene.mock.fault('charge', 'crash-on-abort');
    expect([(await charge()).status, scene.effects]).toEqual([201, 1]);
  });

  it('hits as many requests as it is told, oldest fault first, and other endpoints never', async () => {
    const { mock } = sceneOf();
    server.use(http.post('https://api.test/refunds', mock.idempotent(() => HttpResponse.json({}), { name: 'refund' })));
    const first = mock.fault('charge', 'status', { status: 503, times: 2 });
    const second = mock.fault('charge', 'status', { status: 429 });
    expect((await charge({ url: 'https://api.test/refunds' })).status).toBe(200);
    const statuses: number[] = [];
    for (let sent = 0; sent < 4; sent += 1) statuses.push((await charge()).status);
    expect(statuses).toEqual([503, 503, 429, 201]);
    expect([first.remaining, second.remaining]).toEqual([0, 0]);
  });

  it('refuses a name that no endpoint has, and lists those that there are', () => {
    const { mock } = sceneOf();
    mock.idempotent(() => HttpResponse.json({}), { name: 'refund' });
    expect(() => mock.fault('chrage', 'lose-response')).toThrow(/"lose-response" is for "chrage".*There are: "charge", "refund"/);
  });

  it('may be planted before there is any endpoint', async () => {
    const mock = createIdempotencyMock();
    mock.fault('charge', 'status', { status: 503 });
    server.use(http.post(CHARGES, mock.idempotent(() => HttpResponse.json({}, { status: 201 }), { name: 'charge' })));
    expect([(await charge()).status, (await charge()).status]).toEqual([503, 201]);
  });

  it('is taken away when it is disposed', async () => {
    const { mock } = sceneOf();
    {
      using fault = mock.fault('charge', 'status', { status: 503, times: 10 });
      expect([(await charge()).status, fault.remaining]).toEqual([503, 9]);
    }
    expect((await charge()).status).toBe(201);
  });

  it('is taken away by a reset', async () => {
    const { mock } = sceneOf();
    mock.fault('charge', 'lose-request', { times: 10 });
    await mock.reset();
    expect((await charge()).status).toBe(201);
  });

  it('hits by chance the same requests for the same seed', async () => {
    const run = async (seed: number): Promise<number[]> => {
      server.resetHandlers();
      const { mock } = sceneOf({ seed });
      mock.fault('charge', 'status', { status: 503, times: 100, chance: 0.5 });
      const statuses: number[] = [];
      for (let sent = 0; sent < 12; sent += 1) statuses.push((await charge({ key: `k${sent}` })).status);
      return statuses;
    };
    const [one, again, other] = [await run(7), await run(7), await run(8)];
    expect(again).toEqual(one);
    expect(other).not.toEqual(one);
    expect(new Set(one)).toEqual(new Set([201, 503]));
  });
});
