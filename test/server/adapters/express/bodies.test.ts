import express, { type RequestHandler } from 'express';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { noise, post, postRaw, replayed } from '../serving.js';
import { charges } from './charges.js';

bePatient();

describe('Express: bodies', () => {
  const echo: RequestHandler = (req, res) => void res.json({ body: req.body as unknown });

  it('before body parsers: they find the request untouched, whatever its size', async () => {
    for (const size of [1, 100_000, 5_000_000]) {
      const endpoint = await charges((req, res) => void res.json({ size: (req.body as { x: string }).x.length }), { inside: [express.json({ limit: '10mb' })] });
      const body = JSON.stringify({ x: 'y'.repeat(size) });
      expect(await (await post(endpoint.url, { body })).json()).toEqual({ size });
      expect(replayed(await post(endpoint.url, { body }))).toBe(true);
      expect((await post(endpoint.url, { body: body.replace('y', 'z') })).status).toBe(422);
    }
  });

  it('before body parsers: handlers that read the stream themselves get it, an empty one too, and in pieces', async () => {
    const size: RequestHandler = (req, res) => {
      let length = 0;
      req.on('data', (chunk: Buffer) => (length += chunk.length)).on('end', () => res.json({ length }));
    };
    const iterate: RequestHandler = async (req, res) => {
      let length = 0;
      for await (const chunk of req) length += (chunk as Buffer).length;
      res.json({ length });
    };
    // By then even an empty body in chunks has come to its end.
    const wait: RequestHandler = (_req, _res, next) => void setTimeout(next, 20);
    const endpoint = await charges((req, res, next) => (req.get('x-iterate') ? iterate : size)(req, res, next), { before: [wait] });
    const pieces = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (const piece of ['one', 'two', 'three']) {
          controller.enqueue(new TextEncoder().encode(piece));
          await new Promise(resolve => setTimeout(resolve, 5));
        }
        controller.close();
      },
    });
    const lengthOf = async (key: string, body: BodyInit | null): Promise<unknown> => (await post(endpoint.url, { key, body, duplex: 'half' } as RequestInit)).json();
    expect(await lengthOf('k1', 'x'.repeat(70_000))).toEqual({ length: 70_000 });
    expect(await lengthOf('k2', '')).toEqual({ length: 0 });
    expect(await lengthOf('k3', pieces)).toEqual({ length: 11 });
    const empty = await postRaw(endpoint.url, { 'idempotency-key': 'k4', 'transfer-encoding': 'chunked' }, '');
    expect(JSON.parse(empty.body.toString())).toEqual({ length: 0 });
    expect(await (await post(endpoint.url, { key: 'k5', body: 'x'.repeat(70_000), headers: { 'x-iterate': '1' } })).json()).toEqual({ length: 70_000 });
  });

  it('C35: before an upload parser: a form with a new boundary is the same request', async () => {
    const endpoint = await charges((req, res) => void req.resume().on('end', () => res.json({})));
    const form = (): FormData => {
      const data = new FormData();
      data.append('amount', '4200');
      data.append('receipt', new Blob([noise(10_000)]), 'receipt.bin');
      return data;
    };
    const send = (): Promise<Response> => fetch(endpoint.url, { method: 'POST', body: form(), headers: { 'idempotency-key': 'k' } });
    await send();
    expect([replayed(await send()), endpoint.runs]).toEqual([true, 1]);
  });

  const parsers: Record<string, [RequestHandler, string, string, string]> = {
    'express.json()': [express.json(), 'application/json', '{"a":1,"b":2}', '{"a":1,"b":3}'],
    'express.raw()': [express.raw(), 'application/octet-stream', 'bytes', 'byte5'],
    'express.text()': [express.text(), 'text/plain', 'text', 'next'],
    'express.urlencoded()': [express.urlencoded({ extended: true }), 'application/x-www-form-urlencoded', 'a[b]=1&c=2', 'a[b]=1&c=3'],
  };

  it.each(Object.entries(parsers))('after %s: the same request is a replay, another one is refused', async (_name, [parser, type, body, other]) => {
    const endpoint = await charges(echo, { before: [parser] });
    await post(endpoint.url, { type, body });
    expect([replayed(await post(endpoint.url, { type, body })), endpoint.runs]).toEqual([true, 1]);
    expect((await post(endpoint.url, { type, body: other })).status).toBe(422);
  });

  it('after express.json() with a verify hook that keeps the bytes, numbers that JavaScript cannot hold are told apart', async () => {
    const verify = (req: object, _res: unknown, bytes: Buffer): void => void Object.assign(req, { rawBody: bytes });
    const statusOfNext = async (before: RequestHandler): Promise<number> => {
      const { url } = await charges(echo, { before: [before] });
      await post(url, { body: '{"id":12345678901234567890}' });
      return (await post(url, { body: '{"id":12345678901234567891}' })).status;
    };
    expect(await statusOfNext(express.json({ verify }))).toBe(422);
    expect(await statusOfNext(express.json())).toBe(200);
  });

  it('after a parser that keeps nothing it says what to do, and runs nothing', async () => {
    const consume: RequestHandler = (req, _res, next) => void req.resume().on('end', next);
    const endpoint = await charges(echo, { before: [consume] });
    const response = await post(endpoint.url);
    expect([response.status, await response.text(), endpoint.runs]).toEqual([500, expect.stringContaining('Put idempotent() before what reads the body'), 0]);
  });

  it('after an upload parser it says what to do, and runs nothing', async () => {
    const parse: RequestHandler = (req, _res, next) => void req.resume().on('end', () => next(void (req.body = { amount: '4200' })));
    const endpoint = await charges(echo, { before: [parse] });
    const form = new FormData();
    form.append('amount', '4200');
    const response = await fetch(endpoint.url, { method: 'POST', body: form, headers: { 'idempotency-key': 'k' } });
    expect([response.status, await response.text(), endpoint.runs]).toEqual([500, expect.stringContaining('The body (multipart/form-data'), 0]);
  });

  it('refuses a body over the limit', async () => {
    const endpoint = await charges(echo, { inside: [express.json()], options: { maxRequestBytes: 1_000 } });
    expect((await post(endpoint.url, { body: JSON.stringify('x'.repeat(1_000)) })).status).toBe(413);
    expect([(await post(endpoint.url, { body: '{}' })).status, endpoint.runs]).toEqual([200, 1]);
  });
});
