import express, { type RequestHandler } from 'express';
import { describe, expect, it } from 'vitest';
import { idempotencyOf, idempotent, platformRequestOf } from '../../../../src/server/adapters/express.js';
import { square } from '../../../../src/profiles/index.js';
import { bePatient } from '../../../support/patience.js';
import { codeOf, dedupOf, fileOf, post, replayed } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: what goes around it', () => {
  it('11: GET and HEAD run every time, untouched, and say that the key was ignored', async () => {
    const endpoint = await charges((_req, res) => res.sendFile(fileOf('get.txt', 'x'.repeat(3_000_000))));
    for (const method of ['GET', 'HEAD', 'GET']) {
      const response = await post(endpoint.url, { method, body: null });
      expect([response.status, response.headers.get('idempotency-status'), (await response.text()).length]).toEqual([200, 'ignored', method === 'GET' ? 3_000_000 : 0]);
    }
    expect(endpoint.runs).toBe(3);
  });

  it('1, 57: refusals do not reach the handler, and are problems', async () => {
    const endpoint = await charges((_req, res) => void res.json({}));
    const missing = await post(endpoint.url, { key: '' });
    expect([missing.status, missing.headers.get('content-type'), await codeOf(missing)]).toEqual([400, 'application/problem+json', 'idempotency_key_missing']);
    await post(endpoint.url);
    const reused = await post(endpoint.url, { body: '{"amount":1}' });
    expect([reused.status, await codeOf(reused), endpoint.runs]).toEqual([422, 'idempotency_key_reused', 1]);
  });

  it('1: without a key where none is required the handler runs each time, and says that it is not protected', async () => {
    const endpoint = await charges((req, res) => void res.json({ key: req.idempotency?.key ?? null }), { options: { required: false } });
    for (let sent = 0; sent < 2; sent += 1) {
      const response = await post(endpoint.url, { key: '' });
      expect([response.headers.get('idempotency-status'), await response.json()]).toEqual(['none', { key: null }]);
    }
    expect(endpoint.runs).toBe(2);
  });

  it('48, 51: who is not let in gets no replay', async () => {
    let allowed = true;
    const guard: RequestHandler = (_req, res, next) => (allowed ? next() : void res.status(401).send('no'));
    const endpoint = await charges((_req, res) => void res.json({ secret: true }), { before: [guard] });
    await post(endpoint.url);
    allowed = false;
    const refused = await post(endpoint.url);
    expect([refused.status, await refused.text(), replayed(refused)]).toEqual([401, 'no', false]);
  });

  it('50: scope sees whom a login middleware found', async () => {
    const login: RequestHandler = (req, _res, next) => {
      Object.assign(req, { user: { id: req.get('x-user') } });
      next();
    };
    const scope = (request: Request): string | undefined => platformRequestOf<{ readonly user?: { readonly id: string } }>(request)?.user?.id;
    const endpoint = await charges((req, res) => void res.json({ scope: req.idempotency?.scope }), { before: [login], options: { scope } });
    const answers = await Promise.all(['a', 'b'].map(async user => (await post(endpoint.url, { headers: { 'x-user': user } })).json()));
    expect(answers).toEqual([{ scope: 'a' }, { scope: 'b' }]);
  });

  it('gives the handler what it may know of its run', async () => {
    const seen: unknown[] = [];
    const handler: RequestHandler = (req, res) => {
      seen.push(idempotencyOf(endpoint.dedup, req) === req.idempotency, req.idempotency?.key, req.idempotency?.attempt, req.idempotency?.signal.aborted);
      res.json({});
    };
    const endpoint = await charges(handler);
    await post(endpoint.url);
    expect(seen).toEqual([true, 'k', 1, false]);
    expect(() => idempotencyOf(endpoint.dedup, {})).toThrow('has not come through an idempotency adapter');
  });

  it('finds a key in the body, where the profile has it there, and leaves the body for the handler', async () => {
    const body = (amount: number): string => JSON.stringify({ idempotency_key: 'k', amount });
    for (const around of [{ inside: [express.json()] }, { before: [express.json()] }]) {
      const endpoint = await charges((req, res) => void res.status(201).json(req.body), { ...around, options: { profile: square } });
      const [first, second] = [await post(endpoint.url, { key: '', body: body(1) }), await post(endpoint.url, { key: '', body: body(1) })];
      expect([await first.json(), await second.json(), endpoint.runs]).toEqual([{ idempotency_key: 'k', amount: 1 }, { idempotency_key: 'k', amount: 1 }, 1]);
      expect((await post(endpoint.url, { key: '', body: body(2) })).ok).toBe(false);
    }
  });

  it('refuses to protect a request twice', async () => {
    const dedup = dedupOf();
    const endpoint = await charges((_req, res) => void res.json({}), { inside: [idempotent(dedup, { name: 'inner' })] });
    const response = await post(endpoint.url);
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('protected already')]);
  });
});
