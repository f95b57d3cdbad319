import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { createReadStream } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { idempotency, idempotencyOf, platformRequestOf } from '../../../../src/server/adapters/fastify.js';
import { bePatient } from '../../../support/patience.js';
import { codeOf, dedupOf, fileOf, post, replayed } from '../serving.js';
import { charges, serveApp } from './charges.js';

bePatient();

declare module 'fastify' {
  interface FastifyRequest {
    user?: string;
  }
}

describe('Fastify: what goes around it', () => {
  it('11: GET runs every time, untouched, and says that the key was ignored', async () => {
    const endpoint = await charges((_request, reply) => void reply.send(createReadStream(fileOf('get.txt', 'x'.repeat(3_000_000)))));
    for (let sent = 0; sent < 2; sent += 1) {
      const response = await post(endpoint.url, { method: 'GET', body: null });
      expect([response.headers.get('idempotency-status'), (await response.text()).length]).toEqual(['ignored', 3_000_000]);
    }
    expect(endpoint.runs).toBe(2);
  });

  it('routes without config.idempotency are left alone', async () => {
    const endpoint = await charges(async () => 'x', { after: app => void app.post('/free', request => Promise.resolve({ idempotency: (request as unknown as { idempotency: unknown }).idempotency })) });
    const response = await post(`${endpoint.url}/../free`);
    expect([await response.json(), response.headers.get('idempotency-status')]).toEqual([{ idempotency: null }, null]);
  });

  it('protects routes of child instances, and needs a name', async () => {
    const app = fastify();
    await app.register(idempotency, { dedup: dedupOf() });
    await app.register(async child => void child.post('/deep', { config: { idempotency: { name: 'deep' } } }, () => 'x'), { prefix: '/v1' });
    expect(() => app.post('/nameless', { config: { idempotency: {} } }, async () => 'x')).toThrow('without a name');
    const url = `${await serveApp(app)}/v1/deep`;
    await post(url);
    expect(replayed(await post(url))).toBe(true);
  });

  it('1, 57: refusals do not reach the handler, and are problems', async () => {
    const endpoint = await charges(async () => ({}));
    const missing = await post(endpoint.url, { key: '' });
    expect([missing.status, missing.headers.get('content-type'), await codeOf(missing)]).toEqual([400, 'application/problem+json', 'idempotency_key_missing']);
    await post(endpoint.url);
    const reused = await post(endpoint.url, { body: '{"amount":1}' });
    expect([reused.status, await codeOf(reused), endpoint.runs]).toEqual([422, 'idempotency_key_reused', 1]);
  });

  it('1: without a key where none is required the handler runs each time, and says that it is not protected', async () => {
    const endpoint = await charges(async request => ({ key: idempotencyOf(endpoint.dedup, request).key ?? null }), { options: { required: false } });
    for (let sent = 0; sent < 2; sent += 1) {
      const response = await post(endpoint.url, { key: '' });
      expect([response.headers.get('idempotency-status'), await response.json()]).toEqual(['none', { key: null }]);
    }
    expect(endpoint.runs).toBe(2);
  });

  it('48, 51: who is not let in gets no replay, whichever hook refuses', async () => {
    for (const hook of ['onRequest', 'preValidation', 'preHandler'] as const) {
      let allowed = true;
      const guard = async (_request: unknown, reply: FastifyReply): Promise<unknown> => (allowed ? undefined : reply.code(401).send('no'));
      const endpoint = await charges(async () => ({ secret: true }), { route: { [hook]: guard } });
      await post(endpoint.url);
      allowed = false;
      const refused = await post(endpoint.url);
      expect([refused.status, await refused.text(), replayed(refused)], hook).toEqual([401, 'no', false]);
    }
  });

  it('50: scope sees whom a login hook found', async () => {
    const login = async (request: FastifyRequest): Promise<void> => void (request.user = String(request.headers['x-user']));
    const endpoint = await charges(async request => ({ scope: idempotencyOf(endpoint.dedup, request).scope }), {
      after: app => app.addHook('preHandler', login),
      options: { scope: request => platformRequestOf<FastifyRequest>(request)?.user },
    });
    const answers = await Promise.all(['a', 'b'].map(async user => (await post(endpoint.url, { headers: { 'x-user': user } })).json()));
    expect(answers).toEqual([{ scope: 'a' }, { scope: 'b' }]);
  });

  it('48: what a schema refuses is not recorded', async () => {
    const schema = { body: { type: 'object', required: ['amount'], properties: { amount: { type: 'number' } } } };
    const endpoint = await charges(async () => 'ok', { route: { schema } });
    expect((await post(endpoint.url, { body: '{}' })).status).toBe(400);
    expect([(await post(endpoint.url)).status, endpoint.runs]).toEqual([200, 1]);
  });
});
