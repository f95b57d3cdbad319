import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { idempotencyOf } from '../../../../src/server/adapters/fastify.js';
import { RetryableError, type DedupRecord, type DedupStore, type StoredAnswer } from '../../../../src/server/index.js';
import { memoryDedupStore } from '../../../../src/server/stores/memory.js';
import { bePatient } from '../../../support/patience.js';
import { codeOf, noise, post, replayed, twice } from '../serving.js';
import { charges, type Endpoint, type Handler } from './charges.js';

bePatient();

describe('Fastify: errors', () => {
  const failing = (error: Error): Handler => {
    let runs = 0;
    return async (_request, reply) => {
      runs += 1;
      if (runs === 1) throw error;
      reply.code(201);
      return { runs };
    };
  };

  it('47: what a handler throws is answered by Fastify, not stored, and the same request runs again', async () => {
    const sync: Handler = (_request, reply) => {
      if (endpoint.runs === 1) throw new Error('boom');
      return reply.code(201).send({});
    };
    let endpoint: Endpoint;
    for (const handler of [failing(new Error('boom')), sync]) {
      endpoint = await charges(handler);
      const first = await post(endpoint.url);
      expect([first.status, await first.json(), first.headers.get('idempotency-status')]).toEqual([500, expect.objectContaining({ message: 'boom' }), null]);
      expect([(await post(endpoint.url, { body: '{}' })).status, (await post(endpoint.url)).status, endpoint.runs]).toEqual([422, 201, 2]);
    }
  });

  it('45: an error handler that answers 400 gives an answer like any other', async () => {
    const endpoint = await charges(failing(new Error('amount is missing')), {
      before: app => void app.setErrorHandler((error: Error, _request, reply) => reply.code(400).send({ error: error.message })),
    });
    const [first, second] = await twice(endpoint);
    expect([first.status, second.status, await second.json(), replayed(second), endpoint.runs]).toEqual([400, 400, { error: 'amount is missing' }, true, 1]);
  });

  it('47: after an announced effect it leaves doubt, unless the handler says that it was undone', async () => {
    const doubtful = await charges(async request => {
      await idempotencyOf(doubtful.dedup, request).effectStarted();
      throw new Error('boom');
    });
    expect((await post(doubtful.url)).status).toBe(500);
    expect(await codeOf(await post(doubtful.url))).toBe('idempotency_indeterminate');
    const undone = await charges(async request => {
      if (undone.runs > 1) return 'ok';
      await idempotencyOf(undone.dedup, request).effectStarted();
      throw new RetryableError('The charge was refunded at once.');
    });
    const first = await post(undone.url);
    expect([first.status, await first.json()]).toEqual([500, expect.objectContaining({ message: 'The charge was refunded at once.' })]);
    expect([(await post(undone.url)).status, undone.runs]).toEqual([200, 2]);
  });

  it('a handler that sends and then throws has answered', async () => {
    const endpoint = await charges(async (_request, reply) => {
      void reply.code(201).send({ id: 1 });
      throw new Error('too late');
    });
    const [first, second] = await twice(endpoint);
    expect([first.status, await first.json(), await second.json(), endpoint.runs]).toEqual([201, { id: 1 }, { id: 1 }, 1]);
  });

  it('an answer that breaks off half way is a failure for its client, and not run again', async () => {
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield noise(1_000);
      throw new Error('boom');
    };
    const endpoint = await charges((_request, reply) => void reply.code(201).send(Readable.from(broken())));
    const first = await post(endpoint.url);
    expect([first.status, await first.json()]).toEqual([500, expect.objectContaining({ message: 'boom' })]);
    expect(await (await post(endpoint.url)).json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201 });
    expect(endpoint.runs).toBe(1);
  });

  it('36: the answer of a run that has lost its key gives way to the recorded one, headers and all', async () => {
    const winner: StoredAnswer = { status: 202, headers: [['x-winner', '1']], body: new TextEncoder().encode('theirs') };
    const memory = memoryDedupStore();
    const store: DedupStore = {
      ...memory,
      settle: async () => false,
      get: async ref => ({ ...(await memory.get(ref)) as DedupRecord, state: 'completed', answer: winner }),
    };
    const handlers: Handler[] = [
      async (_request, reply) => reply.code(201).headers({ 'x-loser': '1', 'x-around': 'changed' }).send({}),
      (_request, reply) => void reply.hijack().raw.writeHead(201, { 'x-loser': '1' }).end('{}'),
    ];
    for (const handler of handlers) {
      const endpoint = await charges(handler, { options: { store: { ...store } }, before: app => app.addHook('onRequest', async (_request, reply) => void reply.header('x-around', 'kept')) });
      const response = await post(endpoint.url, { key: String(handlers.indexOf(handler)) });
      expect([response.status, await response.text(), replayed(response)]).toEqual([202, 'theirs', true]);
      expect([response.headers.get('x-winner'), response.headers.get('x-loser')]).toEqual(['1', null]);
      if (handler === handlers[0]) expect(response.headers.get('x-around')).toBe('kept');
    }
  });

  it('49: nothing runs when the store is down', async () => {
    const endpoint = await charges(async () => 'x', {
      options: { store: { ...memoryDedupStore(), claim: () => Promise.reject(new Error('down')) }, clock: { now: () => 0, sleep: async () => {} } },
    });
    const response = await post(endpoint.url);
    expect([response.status, response.headers.get('retry-after'), endpoint.runs]).toEqual([503, '1', 0]);
  });

  it('what scope throws goes to Fastify’s error handler', async () => {
    const endpoint = await charges(async () => 'x', { options: { scope: () => { throw new Error('no directory'); } } });
    const response = await post(endpoint.url);
    expect([response.status, await response.json(), endpoint.runs]).toEqual([500, expect.objectContaining({ message: 'no directory' }), 0]);
  });
});
