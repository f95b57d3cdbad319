import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { bytesOf, gate, noise, post, replayed } from '../serving.js';
import { charges, type Handler } from './charges.js';

bePatient();

describe('Fastify: a client that leaves', () => {
  const slow: Record<string, (opened: Promise<void>) => Handler> = {
    'an async return': opened => async (_request, reply) => {
      await opened;
      reply.code(201);
      return { id: 1 };
    },
    'an async handler that returns nothing': opened => async (_request, reply) => {
      await opened;
      reply.code(201);
    },
    'a stream': opened => async (_request, reply) => {
      const pieces = async function* (): AsyncGenerator<Uint8Array> {
        yield noise(100_000);
        await opened;
        yield noise(100_000);
      };
      return reply.code(201).send(Readable.from(pieces()));
    },
    'a hijacked raw response': opened => async (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(201);
      reply.raw.write('one ');
      await opened;
      reply.raw.end('two');
    },
  };

  it.each(Object.entries(slow))('43, C99: during %s, does not stop it; its retry meets the run, then the answer', async (_name, handler) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note).on('uncaughtException', note);
    const { opened, open } = gate();
    const expected = await bytesOf(await post((await charges(handler(Promise.resolve()))).url));
    const endpoint = await charges(handler(opened));
    const client = new AbortController();
    const left = post(endpoint.url, { signal: client.signal }).catch((error: unknown) => error);
    await expect.poll(() => endpoint.runs).toBe(1);
    client.abort();
    await left;
    expect((await post(endpoint.url)).status).toBe(409);
    // The server has heard of it by now, on the connection that is gone.
    await new Promise(resolve => setTimeout(resolve, 20));
    open();
    await expect.poll(async () => (await post(endpoint.url)).status).toBe(201);
    const replay = await post(endpoint.url);
    expect([replayed(replay), endpoint.runs]).toEqual([true, 1]);
    expect(Buffer.compare(await bytesOf(replay), expected)).toBe(0);
    process.off('unhandledRejection', note).off('uncaughtException', note);
    expect(unhandled).toEqual([]);
  });
});
