import compress from '@fastify/compress';
import { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { postRaw } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Fastify: compression', () => {
  const value = { lines: Array.from({ length: 500 }, (_, line) => `line ${line}`) };
  const text = JSON.stringify(value);
  const gzip = { 'accept-encoding': 'gzip' };

  it.each(['before', 'after'])('@fastify/compress, registered %s it, encodes each answer for its client', async when => {
    for (const handler of [async () => value, (_request: unknown, reply: FastifyReply) => void reply.type('application/json').send(Readable.from([text]))]) {
      const endpoint = await charges(handler, { [when]: (app: FastifyInstance) => app.register(compress) });
      const encodings: unknown[] = [];
      for (const headers of [gzip, gzip, {}]) {
        const { headers: got, body } = await postRaw(endpoint.url, headers);
        encodings.push(got['content-encoding']);
        expect((got['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()).toBe(text);
      }
      expect([encodings, endpoint.runs]).toEqual([['gzip', 'gzip', undefined], 1]);
    }
  });

  it('an instance hook that encodes inside stores plain bytes: a client that did not ask for gzip never gets it', async () => {
    const encode = async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
      if (!String(request.headers['accept-encoding']).includes('gzip')) return payload;
      reply.header('content-encoding', 'gzip');
      return gzipSync(String(payload));
    };
    const endpoint = await charges(async () => value, { before: app => app.addHook('onSend', encode) });
    for (const headers of [gzip, {}]) {
      const { headers: got, body } = await postRaw(endpoint.url, headers);
      expect([got['content-encoding'], body.toString() === text]).toEqual([undefined, true]);
    }
    expect(endpoint.runs).toBe(1);
  });
});
