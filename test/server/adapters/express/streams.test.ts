import compression from 'compression';
import type { RequestHandler } from 'express';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { bytesOf, codeOf, fileOf, gate, noise, post } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: long answers', () => {
  it('52, C90: one over the limit goes out whole, and is never run again', async () => {
    for (const [name, write] of Object.entries<RequestHandler>({
      end: (_req, res) => void res.status(201).end(noise(2_000_000)),
      file: (_req, res) => res.status(201).sendFile(fileOf('over.bin', noise(2_000_000))),
    })) {
      const endpoint = await charges(write);
      expect(Buffer.compare(await bytesOf(await post(endpoint.url)), noise(2_000_000)), name).toBe(0);
      const again = await post(endpoint.url);
      expect(await again.json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201, safe_new_key: false });
      expect([again.status, endpoint.runs]).toEqual([409, 1]);
    }
  });

  it.each([['alone', []], ['with compression around it', [compression()]]])('53: an event stream reaches its client live, %s', async (_name, before) => {
    const { opened, open } = gate();
    const endpoint = await charges(async (_req, res) => {
      res.type('text/event-stream');
      res.write('data: 1\n\n');
      (res as { flush?: () => void }).flush?.();
      await opened;
      res.end('data: 2\n\n');
    }, { before: [...before] });
    const response = await post(endpoint.url);
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    expect((await reader.read()).value).toBe('data: 1\n\n');
    expect(await codeOf(await post(endpoint.url))).toBe('idempotency_result_unavailable');
    open();
    expect([(await reader.read()).value, (await reader.read()).done, endpoint.runs]).toEqual(['data: 2\n\n', true, 1]);
  });

  it('53: what is written to a live stream late comes after what was written before', async () => {
    const { opened, open } = gate();
    const endpoint = await charges(async (_req, res) => {
      res.type('text/event-stream');
      for (let chunk = 0; chunk < 100; chunk += 1) res.write('a'.repeat(100_000));
      await opened;
      res.end('the end');
    });
    const response = await post(endpoint.url);
    open();
    const text = await response.text();
    expect([text.length, text.endsWith('athe end')]).toEqual([10_000_007, true]);
  });

  it('53: a writer that waits for its client to drain goes on when it has left', async () => {
    const done = gate();
    const endpoint = await charges(async (_req, res) => {
      for (let chunk = 0; chunk < 300; chunk += 1) {
        if (!res.write(noise(100_000))) await new Promise(resolve => res.once('drain', resolve));
      }
      res.end(() => done.open());
    });
    const client = new AbortController();
    const response = await post(endpoint.url, { signal: client.signal });
    await (response.body as ReadableStream<Uint8Array>).getReader().read();
    // So long that it waits.
    await new Promise(resolve => setTimeout(resolve, 100));
    client.abort();
    await done.opened;
  });

  it('53: the writer of a live stream hears that its client has left', async () => {
    const closed = gate();
    const endpoint = await charges((_req, res) => {
      res.on('close', () => closed.open());
      res.type('text/event-stream').write('data: 1\n\n');
    });
    const client = new AbortController();
    const response = await post(endpoint.url, { signal: client.signal });
    await (response.body as ReadableStream<Uint8Array>).getReader().read();
    client.abort();
    await closed.opened;
  });

  it('53: a stream over the limit flows as fast as its client reads', async () => {
    let produced = 0;
    const source = (): Readable => new Readable({
      read() {
        produced += 64_000;
        this.push(produced > 50_000_000 ? null : Buffer.alloc(64_000));
      },
    });
    const endpoint = await charges((_req, res) => void source().pipe(res));
    const response = await post(endpoint.url);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(produced).toBeLessThan(25_000_000);
    await reader.cancel();
  });
});
