import type { ErrorRequestHandler, RequestHandler } from 'express';
import { describe, expect, it } from 'vitest';
import { idempotentErrors } from '../../../../src/server/adapters/express.js';
import { RetryableError, type DedupRecord, type DedupStore, type StoredAnswer } from '../../../../src/server/index.js';
import { memoryDedupStore } from '../../../../src/server/stores/memory.js';
import { bePatient } from '../../../support/patience.js';
import { codeOf, post, replayed, twice } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: errors', () => {
  const answers = (status: number): ErrorRequestHandler => (error: Error, _req, res, _next) => void res.status(status).json({ error: error.message });
  const failing = (error: Error, times = 1): RequestHandler => {
    let runs = 0;
    return (_req, res) => {
      runs += 1;
      if (runs <= times) throw error;
      res.status(201).json({ runs });
    };
  };

  it('47: what a handler throws is answered by Express, not stored, and the same request runs again', async () => {
    for (const handler of [failing(new Error('boom')), ((_req, res, next) => (handled ? void res.status(201).json({}) : ((handled = true), next(new Error('boom'))))) as RequestHandler]) {
      const endpoint = await charges(handler, { after: [answers(500)] });
      const first = await post(endpoint.url);
      expect([first.status, await first.json(), first.headers.get('idempotency-status')]).toEqual([500, { error: 'boom' }, null]);
      expect([(await post(endpoint.url, { body: '{}' })).status, (await post(endpoint.url)).status, endpoint.runs]).toEqual([422, 201, 2]);
    }
  });
  let handled = false;

  it('47: a rejection without an error handler is Express’s own 500', async () => {
    const endpoint = await charges(async (_req, res) => (endpoint.runs === 1 ? Promise.reject(new Error('boom')) : void res.status(201).end()));
    const first = await post(endpoint.url);
    expect([first.status, (await first.text()).includes('boom'), (await post(endpoint.url)).status]).toEqual([500, true, 201]);
  });

  it('45: an error handler that answers 400 gives an answer like any other', async () => {
    const endpoint = await charges(failing(new Error('amount is missing')), { after: [answers(400)] });
    const [first, second] = await twice(endpoint);
    expect([first.status, second.status, await second.json(), replayed(second), endpoint.runs]).toEqual([400, 400, { error: 'amount is missing' }, true, 1]);
  });

  it('47: after an announced effect it leaves doubt', async () => {
    const endpoint = await charges(async req => {
      await req.idempotency?.effectStarted();
      throw new Error('boom');
    }, { after: [answers(500)] });
    expect((await post(endpoint.url)).status).toBe(500);
    expect(await codeOf(await post(endpoint.url))).toBe('idempotency_indeterminate');
  });

  it('47: after an announced effect that was undone the key is free, where idempotentErrors tells the engine', async () => {
    const endpoint = await charges(async (req, res) => {
      if (endpoint.runs > 1) return void res.status(201).end();
      await req.idempotency?.effectStarted();
      throw new RetryableError('The charge was refunded at once.');
    }, { after: [idempotentErrors, answers(503)] });
    const first = await post(endpoint.url);
    expect([first.status, await first.json()]).toEqual([503, { error: 'The charge was refunded at once.' }]);
    expect([(await post(endpoint.url)).status, endpoint.runs]).toEqual([201, 2]);
  });

  it('an answer that breaks off half way is cut off for its client, and not run again', async () => {
    const endpoint = await charges((_req, res) => {
      res.status(201).write('half');
      throw new Error('boom');
    });
    const first = await post(endpoint.url).then(response => response.text()).catch((error: unknown) => error);
    expect(first).toBeInstanceOf(Error);
    expect(await (await post(endpoint.url)).json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201 });
    expect(endpoint.runs).toBe(1);
  });

  it('a handler that destroys its response has failed', async () => {
    const endpoint = await charges((_req, res) => void (endpoint.runs === 1 ? res.destroy() : res.status(201).end()));
    expect(await codeOf(await post(endpoint.url))).toBe('handler_failed');
    expect((await post(endpoint.url)).status).toBe(201);
  });

  it('49: nothing runs when the store is down', async () => {
    const endpoint = await charges((_req, res) => void res.end(), {
      options: { store: { ...memoryDedupStore(), claim: () => Promise.reject(new Error('down')) }, clock: { now: () => 0, sleep: async () => {} } },
    });
    const response = await post(endpoint.url);
    expect([response.status, response.headers.get('retry-after'), endpoint.runs]).toEqual([503, '1', 0]);
  });

  it('error handlers, and handlers of what is not protected, find the request as it was', async () => {
    const sockets: unknown[] = [];
    const note: RequestHandler = (req, _res, next) => next(void sockets.push(req.socket));
    const noteError: ErrorRequestHandler = (_error, req, res, _next) => void res.status(500).end(String(sockets.push(req.socket)));
    const endpoint = await charges((_req, res) => void res.end(), {
      before: [note], inside: [note], after: [noteError], options: { scope: () => { throw new Error('no directory'); } },
    });
    await post(endpoint.url);
    await post(endpoint.url, { method: 'GET', body: null });
    expect(sockets).toHaveLength(4);
    expect([sockets[0] === sockets[1], sockets[2] === sockets[3]]).toEqual([true, true]);
  });

  it('36: the answer of a run that has lost its key gives way to the recorded one, headers and all', async () => {
    const winner: StoredAnswer = { status: 202, headers: [['x-winner', '1']], body: new TextEncoder().encode('theirs') };
    const memory = memoryDedupStore();
    const store: DedupStore = {
      ...memory,
      settle: async () => false,
      get: async ref => ({ ...(await memory.get(ref)) as DedupRecord, state: 'completed', answer: winner }),
    };
    const endpoint = await charges((_req, res) => void res.status(201).set({ 'x-loser': '1', 'x-around': 'changed' }).json({}), {
      before: [(_req, res, next) => next(void res.set('x-around', 'kept'))], options: { store },
    });
    const response = await post(endpoint.url);
    expect([response.status, await response.text(), replayed(response)]).toEqual([202, 'theirs', true]);
    expect(['x-winner', 'x-loser', 'x-around'].map(name => response.headers.get(name))).toEqual(['1', null, 'kept']);
  });

  it('what scope throws goes to Express’s error handlers', async () => {
    const endpoint = await charges((_req, res) => void res.end(), {
      options: { scope: () => { throw new Error('no directory'); } },
      after: [answers(502)],
    });
    const response = await post(endpoint.url);
    expect([response.status, await response.json(), endpoint.runs]).toEqual([502, { error: 'no directory' }, 0]);
  });
});
