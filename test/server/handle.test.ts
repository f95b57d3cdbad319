import { describe, expect, it } from 'vitest';
import { LeaseLostError, type DedupStore, type Verdict } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { endpointOf, gate, isReplay, LEASE, passUntil, requestOf, type Stage } from './support/endpoint.js';

bePatient();

const stage = (): Stage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

const fail = (): never => {
  throw new TypeError('boom');
};

const RUNNING = { scope: '4:acme6:charge', key: 'k' };

describe('what only the caller of handle can see', () => {
  it('a request that is not the handler’s business leaves its key free for anybody', async () => {
    const endpoint = endpointOf(stage());
    expect(await endpoint.dedup.handle(requestOf({ key: 'k' }), () => undefined, { name: 'charge' })).toBeUndefined();
    expect((await endpoint.send({ key: 'k', body: '{"other":1}' })).headers.get('idempotency-status')).toBe('stored');
  });

  it('observers hear every outcome and cannot change it', async () => {
    const heard: string[] = [];
    const endpoint = endpointOf(stage(), undefined, {
      on: {
        executed: ({ status, record }) => void heard.push(`executed ${status} ${record}`),
        replayed: ({ status }) => void heard.push(`replayed ${status}`),
        refused: ({ refusal }) => {
          heard.push(`refused ${refusal.code}`);
          throw new Error('observer');
        },
        failed: error => heard.push(`failed ${(error as Error).message}`),
      },
    });
    await endpoint.send({ key: 'k' });
    await endpoint.send({ key: 'k' });
    expect((await endpoint.send({ key: 'k', body: '{}' })).status).toBe(422);
    expect(heard).toEqual(['executed 201 stored', 'replayed 201', 'refused idempotency_key_reused', 'failed observer']);
  });

  it('what a handler throws is reported as it is', async () => {
    const failures: unknown[] = [];
    const endpoint = endpointOf(stage(), fail, { on: { failed: error => failures.push(error) } });
    expect((await endpoint.send({ key: 'k' })).status).toBe(500);
    expect(failures).toEqual([new TypeError('boom')]);
  });

  it('a fingerprint of the server’s own may ignore a field', async () => {
    const endpoint = endpointOf(stage(), undefined, { fingerprint: ({ method, target }) => `own:${method}${target}` });
    await endpoint.send({ key: 'k', body: '{"sentAt":1}' });
    expect(isReplay(await endpoint.send({ key: 'k', body: '{"sentAt":2}' }))).toBe(true);
  });

  it('407 and 421, which no client of a test may see, free the key for any request too', async () => {
    for (const status of [407, 421]) {
      const endpoint = endpointOf(stage(), (_request, { attempt }) => new Response(null, { status: attempt === 1 ? status : 201 }));
      expect((await endpoint.send({ key: 'k' })).status).toBe(status);
      expect((await endpoint.send({ key: 'k', body: '{"corrected":true}' })).status).toBe(201);
    }
  });

  it('C86: headers that Connection names are not stored, and nothing is added to the others but the markers', async () => {
    const headers: [string, string][] = [['connection', 'x-hop'], ['x-hop', '1'], ['x-custom', 'kept'], ['content-type', 'text/csv']];
    const endpoint = endpointOf(stage(), () => new Response('id\n1\n', { status: 201, headers }));
    await endpoint.send({ key: 'k' });
    expect(Object.fromEntries((await endpoint.send({ key: 'k' })).headers)).toEqual({
      'content-type': 'text/csv', 'x-custom': 'kept', 'idempotency-status': 'replayed', 'idempotent-replayed': 'true',
    });
  });

  it('the request of a handler is not aborted with its client', async () => {
    const { opened, open } = gate();
    const client = new AbortController();
    const { dedup } = endpointOf(stage());
    let aborted: boolean | undefined;
    const handler = async (request: Request): Promise<Response> => {
      await opened;
      aborted = request.signal.aborted;
      return new Response('done');
    };
    const answered = dedup.handle(new Request(requestOf({ key: 'k' }), { signal: client.signal }), handler, { name: 'charge' });
    client.abort();
    open();
    await answered;
    expect(aborted).toBe(false);
  });

  it('the signal of a run that lost its key says so by its reason', async () => {
    const { opened, open } = gate();
    const { store, clock } = stage();
    let signal: AbortSignal | undefined;
    const slow = endpointOf({ store, clock }, async (_request, context) => {
      signal = context.signal;
      await opened;
      return new Response('slow');
    });
    const answered = slow.send({ key: 'k' });
    await expect.poll(() => slow.runs).toBe(1);
    const row = await store.get(RUNNING);
    await store.settle({ ...RUNNING, owner: row?.owner ?? '', fence: row?.fence ?? 0 }, { to: 'indeterminate', reason: 'test' });
    await expect.poll(() => clock.sleeping).toBe(1);
    await clock.advance(LEASE / 3);
    await expect.poll(() => signal?.aborted).toBe(true);
    expect(signal?.reason).toBeInstanceOf(LeaseLostError);
    open();
    await answered;
  });

  it('renewals end with their run', async () => {
    const { opened, open } = gate();
    const { store, clock } = stage();
    const endpoint = endpointOf({ store, clock }, async () => opened.then(() => new Response('done')));
    const answered = endpoint.send({ key: 'k' });
    await expect.poll(() => clock.sleeping).toBe(1);
    open();
    await answered;
    await expect.poll(() => clock.sleeping).toBe(0);
  });

  it('idle waits for the runs that go on', async () => {
    const { opened, open } = gate();
    const endpoint = endpointOf(stage(), async () => opened.then(() => new Response('done')));
    const answered = endpoint.send({ key: 'k' });
    await expect.poll(() => endpoint.runs).toBe(1);
    let idle = false;
    const down = endpoint.dedup.idle().then(() => (idle = true));
    await new Promise(resolve => setTimeout(resolve, 0));
    expect(idle).toBe(false);
    open();
    await Promise.all([answered, down]);
    expect(idle).toBe(true);
  });

  it('58: markers are exposed to pages of other origins, and to them only, whoever does the rest of CORS', async () => {
    const { dedup, send } = endpointOf(stage());
    for (const sent of [{ key: 'k' }, { key: 'k' }, {}]) {
      const request = requestOf({ ...sent, headers: { origin: 'https://page.example' } });
      const response = await dedup.handle(request, () => new Response('ok'), { name: 'charge' });
      expect(response.headers.get('access-control-expose-headers')).toContain('Idempotent-Replayed');
    }
    expect((await send({ key: 'k3' })).headers.has('access-control-expose-headers')).toBe(false);
  });
});

it('a key that was claimed without anybody learning it is freed, so that the next request runs', async () => {
  const { store, clock } = stage();
  let lost = 4;
  const losing: DedupStore = {
    ...store,
    async claim(claim) {
      const result = await store.claim(claim);
      if (lost-- > 0) throw new Error('connection lost');
      return result;
    },
  };
  const endpoint = endpointOf({ store: losing, clock });
  const answer = endpoint.send({ key: 'k' });
  await passUntil(clock, answer);
  expect([(await answer).status, endpoint.runs, (await store.get(RUNNING))?.state]).toEqual([503, 0, 'in_progress']);
  await clock.advance(100);
  await expect.poll(async () => (await store.get(RUNNING))?.state).toBe('retryable');
  expect([(await endpoint.send({ key: 'k' })).status, endpoint.runs]).toEqual([201, 1]);
});

describe('doubt that the application can end', () => {
  const dies = (effect: () => void) => async (_request: Request, context: { effectStarted(): Promise<void> }): Promise<never> => {
    await context.effectStarted();
    effect();
    throw new TypeError('the network went away');
  };

  it('is asked about in public words, and answered in the words of resolve', async () => {
    const asked: unknown[] = [];
    const verdicts: (Verdict | undefined)[] = [undefined, { answer: Response.json({ id: 7 }, { status: 201, headers: { location: '/charges/7' } }) }];
    const recover = (doubt: unknown): Verdict | undefined => {
      asked.push(doubt);
      return verdicts.shift();
    };
    const endpoint = endpointOf(stage(), dies(() => {}), { recover });
    expect((await endpoint.send({ key: 'k' })).status).toBe(500);
    const { operation_ref: operationRef } = (await (await endpoint.send({ key: 'k' })).json()) as { operation_ref: string };
    const found = await endpoint.send({ key: 'k' });
    expect([found.status, isReplay(found), found.headers.get('location'), await found.json(), endpoint.runs]).toEqual([201, true, '/charges/7', { id: 7 }, 1]);
    expect(asked).toEqual([1, 2].map(() => ({ scope: 'acme', name: 'charge', key: 'k', operationRef })));
  });

  it('takes no word that is no verdict: the doubt stays, and who runs the server hears why', async () => {
    const failures: unknown[] = [];
    const endpoint = endpointOf(stage(), dies(() => {}), { recover: () => 'maybe' as Verdict, on: { failed: error => failures.push((error as Error).message) } });
    await endpoint.send({ key: 'k' });
    expect((await endpoint.send({ key: 'k' })).status).toBe(503);
    expect(failures).toEqual(['the network went away', expect.stringContaining('"maybe" is no verdict')]);
    const { dedup } = endpoint;
    await expect(dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'maybe' as Verdict)).rejects.toThrow("Say 'not-applied', 'applied', or { answer");
    await expect(dedup.resolve('k' as never, 'applied')).rejects.toThrow('resolve wants { scope, name, key }');
    expect(await dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'applied')).toBe(true);
  });
});
