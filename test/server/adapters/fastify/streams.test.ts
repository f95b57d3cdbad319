import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { bytesOf, codeOf, fileOf, gate, noise, post } from '../serving.js';
import { charges, type Handler } from './charges.js';

bePatient();

describe('Fastify: long answers', () => {
  it('52, C90: one over the limit goes out whole, and is never run again', async () => {
    const handlers: Handler[] = [
      (_request, reply) => void reply.code(201).send(Buffer.from(noise(2_000_000))),
      (_request, reply) => void reply.code(201).send(createReadStream(fileOf('over.bin', noise(2_000_000)))),
    ];
    for (const handler of handlers) {
      const endpoint = await charges(handler);
      expect(Buffer.compare(await bytesOf(await post(endpoint.url)), noise(2_000_000))).toBe(0);
      const again = await post(endpoint.url);
      expect(await again.json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201, safe_new_key: false });
      expect([again.status, endpoint.runs]).toEqual([409, 1]);
    }
  });

  const live: Record<string, (opened: Promise<void>) => Handler> = {
    'a stream': opened => (_request, reply) => {
      const events = async function* (): AsyncGenerator<string> {
        yield 'data: 1\n\n';
        await opened;
        yield 'data: 2\n\n';
      };
      return reply.type('text/event-stream').send(Readable.from(events()));
    },
    'a hijacked raw response': opened => async (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
      reply.raw.write('data: 1\n\n');
      await opened;
      reply.raw.end('data: 2\n\n');
    },
  };

  it.each(Object.entries(live))('53: an event stream reaches its client live, from %s', async (_name, handler) => {
    const { opened, open } = gate();
    const endpoint = await charges(handler(opened));
    const response = await post(endpoint.url);
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    expect((await reader.read()).value).toBe('data: 1\n\n');
    expect(await codeOf(await post(endpoint.url))).toBe('idempotency_result_unavailable');
    open();
    expect([(await reader.read()).value, (await reader.read()).done, endpoint.runs]).toEqual(['data: 2\n\n', true, 1]);
  });
});
