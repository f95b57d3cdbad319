import compress from '@fastify/compress';
import { type FastifyInstance, type FastifyRequest } from 'fastify';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { noise, post, replayed } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Fastify: bodies', () => {
  it('the sent bytes count, not what a parser made of them', async () => {
    const endpoint = await charges(async request => request.body);
    await post(endpoint.url, { body: '{"id":12345678901234567890}' });
    expect((await post(endpoint.url, { body: '{"id":12345678901234567891}' })).status).toBe(422);
    expect(replayed(await post(endpoint.url, { body: ' {"id": 12345678901234567890}' }))).toBe(true);
  });

  it('handlers get parsed bodies of any size, and no body', async () => {
    const endpoint = await charges(async request => ({ size: JSON.stringify(request.body ?? null).length }), { server: { bodyLimit: 10_000_000 } });
    for (const size of [1, 100_000, 5_000_000]) {
      const response = await post(endpoint.url, { key: `k${size}`, body: JSON.stringify('x'.repeat(size)) });
      expect(await response.json()).toEqual({ size: size + 2 });
    }
    expect(await (await post(endpoint.url, { key: 'none', body: null })).json()).toEqual({ size: 4 });
  });

  it('C35: a form that the handler reads itself arrives whole, and with a new boundary is the same request', async () => {
    const plain = (app: FastifyInstance): void => app.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null));
    const endpoint = await charges(async request => {
      let length = 0;
      for await (const chunk of request.raw) length += (chunk as Buffer).length;
      return { length };
    }, { before: plain });
    const send = async (): Promise<Response> => {
      const form = new FormData();
      form.append('receipt', new Blob([noise(200_000)]), 'receipt.bin');
      return fetch(endpoint.url, { method: 'POST', body: form, headers: { 'idempotency-key': 'k' } });
    };
    const { length } = (await (await send()).json()) as { length: number };
    expect(length).toBeGreaterThan(200_000);
    expect([replayed(await send()), endpoint.runs]).toEqual([true, 1]);
  });

  it('bodies that @fastify/compress decodes on their way are read right', async () => {
    for (const when of ['before', 'after'] as const) {
      const endpoint = await charges(async request => request.body, { [when]: (app: FastifyInstance) => app.register(compress) });
      const send = (): Promise<Response> => post(endpoint.url, { body: gzipSync('{"amount":1}'), headers: { 'content-encoding': 'gzip' } });
      expect([await (await send()).json(), replayed(await send())], when).toEqual([{ amount: 1 }, true]);
    }
  });

  it('a body that was read past its parser is refused with what to do', async () => {
    const drain = async (request: FastifyRequest): Promise<void> => {
      for await (const chunk of request.raw) void chunk;
    };
    const plain = (app: FastifyInstance): void => app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    const endpoint = await charges(async () => 'x', { before: plain, route: { preValidation: drain } });
    const response = await post(endpoint.url, { type: 'text/csv' });
    expect([response.status, await response.text(), endpoint.runs]).toEqual([500, expect.stringContaining('Read it in the handler'), 0]);
  });

  it('refuses a body over the limit', async () => {
    const endpoint = await charges(async () => 'x', { options: { maxRequestBytes: 1_000 } });
    expect((await post(endpoint.url, { body: JSON.stringify('x'.repeat(1_000)) })).status).toBe(413);
    expect([(await post(endpoint.url, { body: '{}' })).status, endpoint.runs]).toEqual([200, 1]);
  });
});
