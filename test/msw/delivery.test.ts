import { http, HttpResponse } from 'msw';
import { describe, expect, it } from 'vitest';
import { createClient, operationOf } from '../../src/index.js';
import { memoryKeyStore } from '../../src/keystore/memory.js';
import { createIdempotencyMock, type IdempotencyMock, type IdempotencyMockOptions } from '../../src/msw/index.js';
import { charge, CHARGES, kindsOf, useServer } from './support.js';

const server = useServer();

interface Scene {
  readonly mock: IdempotencyMock;
  readonly effects: number;
}

/** `work` is awaited before the effect. */
const sceneOf = (options: IdempotencyMockOptions, work: () => Promise<void> = async () => {}): Scene => {
  const mock = createIdempotencyMock(options);
  let effects = 0;
  const resolver = mock.idempotent(
    async () => {
      await work();
      effects += 1;
      return HttpResponse.json({ id: `ch_${effects}` }, { status: 201 });
    },
    { name: 'charge' },
  );
  server.use(http.post(CHARGES, resolver));
  return {
    mock,
    get effects() {
      return effects;
    },
  };
};

/** A client whose pauses are short, whatever it is asked for. */
const clientOf = () => createClient({ prefix: 'https://api.test', keystore: memoryKeyStore(), scope: 'acct_1', retry: { limit: 3, delay: () => 10, maxRetryAfter: 10 } });

const arrivals = ({ mock }: Scene): number => kindsOf(mock.ledger).filter(kind => kind === 'request').length;

describe('a mock that delivers every request twice', () => {
  it('C27: one after the other: one effect, and the client sees one response, the replay', async () => {
    const scene = sceneOf({ duplicateDelivery: 'sequential' });
    const response = await charge();
    expect([response.status, await response.json(), response.headers.get('idempotent-replayed')]).toEqual([201, { id: 'ch_1' }, 'true']);
    expect([scene.effects, arrivals(scene)]).toEqual([1, 2]);
    expect(kindsOf(scene.mock.ledger)).toEqual(['request', 'claim', 'execution', 'answer', 'request', 'replay']);
  });

  it('C27: both at once: one effect; the second is told that the first is in progress', async () => {
    let finish = (): void => {};
    const finished = new Promise<void>(resolve => (finish = resolve));
    const scene = sceneOf({ duplicateDelivery: 'concurrent' }, () => finished);
    expect((await charge()).status).toBe(409);
    finish();
    await expect.poll(() => kindsOf(scene.mock.ledger)).toContain('answer');
    expect([(await charge()).headers.get('idempotent-replayed'), scene.effects]).toEqual(['true', 1]);
  });

  it.each(['sequential', 'concurrent'] as const)('C27: %s: a client gets the answer, once, under one key, and the effect is one', async duplicateDelivery => {
    const scene = sceneOf({ duplicateDelivery });
    const api = clientOf();
    const response = await api.post('charges', { operation: 'order:42:charge', json: { amount: 4200 } });
    expect([response.status, await response.json(), operationOf(response)?.state]).toEqual([201, { id: 'ch_1' }, 'succeeded']);
    expect(scene.effects).toBe(1);
    expect(new Set(scene.mock.ledger.map(({ key }) => key)).size).toBe(1);
    await api.close();
  });

  it('C27: a loss on the first delivery does not matter to the second', async () => {
    const scene = sceneOf({ duplicateDelivery: 'sequential' });
    scene.mock.fault('charge', 'lose-response');
    expect([(await charge()).headers.get('idempotent-replayed'), scene.effects, arrivals(scene)]).toEqual(['true', 1, 2]);
  });

  it('C27: after a 408 the request may have been executed: the client asks again under its key and never believes that nothing happened', async () => {
    const scene = sceneOf({});
    scene.mock.fault('charge', 'status', { status: 408, phase: 'response' });
    scene.mock.fault('charge', 'status', { status: 404, body: '{}', headers: { 'content-type': 'application/json' } });
    const api = clientOf();
    // A refusal would mean that nothing happened; after a 408 nobody can know that.
    await expect(api.post('charges', { operation: 'order:42:charge', json: { amount: 4200 } })).rejects.toMatchObject({ code: 'IN_DOUBT' });
    expect([scene.effects, new Set(scene.mock.ledger.map(({ key }) => key)).size]).toEqual([1, 1]);
    await api.close();
  });

  it('control: without a key a second delivery is a second effect', async () => {
    const scene = sceneOf({ duplicateDelivery: 'sequential', required: false });
    await charge({ key: '' });
    expect(scene.effects).toBe(2);
  });
});
