import { request as httpRequest, type IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { toNodeListener, type FetchHandler } from '../../../src/server/adapters/node.js';
import { createDedup } from '../../../src/server/index.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';
import { bePatient } from '../../support/patience.js';
import { gate, serve } from './serving.js';

bePatient();

const listen = (handler: FetchHandler, onError: (error: unknown) => void = () => {}): Promise<string> => serve(toNodeListener(handler, { onError }));

const chargeServer = (work: () => Promise<Response> | Response) => {
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme' });
  let runs = 0;
  const handler: FetchHandler = request => dedup.handle(request, () => ((runs += 1), work()), { name: 'charge' });
  return {
    handler,
    get runs() {
      return runs;
    },
  };
};

const post = (origin: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${origin}/charges?x=1`, { method: 'POST', body: '{"amount":1}', headers: { 'content-type': 'application/json', 'idempotency-key': 'k' }, ...init });

const rawPost = (origin: string, headers: string[]): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    httpRequest(`${origin}/charges`, { method: 'POST', headers: ['host', 'x', ...headers] }, resolve).on('error', reject).end();
  });

describe('toNodeListener', () => {
  it('hands over method, URL, headers and body, and sends status, headers, cookies and bytes back', async () => {
    const origin = await listen(async request => {
      const seen = { method: request.method, url: request.url, type: request.headers.get('content-type'), body: await request.text() };
      const headers = new Headers([['x-seen', JSON.stringify(seen)], ['set-cookie', 'a=1'], ['set-cookie', 'b=2']]);
      return new Response(new Uint8Array([0, 255]), { status: 202, headers });
    });
    const response = await post(origin);
    expect(response.status).toBe(202);
    expect(JSON.parse(response.headers.get('x-seen') ?? '')).toEqual({ method: 'POST', url: `${origin}/charges?x=1`, type: 'application/json', body: '{"amount":1}' });
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect([...(await response.bytes())]).toEqual([0, 255]);
  });

  it('6: a replay has a Date and a Content-Length or framing of its own', async () => {
    const charge = chargeServer(() => new Response('done', { headers: { date: 'Tue, 01 Jan 2030 00:00:00 GMT', 'x-request-id': '1' } }));
    const origin = await listen(charge.handler);
    await post(origin);
    const replay = await post(origin);
    expect([replay.headers.get('idempotent-replayed'), replay.headers.get('x-request-id'), await replay.text()]).toEqual(['true', null, 'done']);
    expect(replay.headers.get('date')).not.toContain('2030');
  });

  it('C88: 204 and 304 go out and are replayed without a body', async () => {
    for (const status of [204, 304]) {
      const charge = chargeServer(() => new Response(null, { status }));
      const origin = await listen(charge.handler);
      await post(origin);
      const replay = await post(origin);
      expect([replay.status, await replay.text(), charge.runs]).toEqual([status, '', 1]);
    }
  });

  it('13: sees a key that was sent in two header lines', async () => {
    const origin = await listen(chargeServer(() => new Response('ok')).handler);
    expect((await rawPost(origin, ['idempotency-key', 'a', 'idempotency-key', 'b'])).statusCode).toBe(400);
  });

  it('43: a client that goes away after 150 ms does not stop the run; its retry meets the run, then the answer', async () => {
    const { opened, open } = gate();
    const charge = chargeServer(async () => opened.then(() => new Response('done', { status: 201 })));
    const origin = await listen(charge.handler);
    const client = new AbortController();
    const first = post(origin, { signal: client.signal });
    await expect.poll(() => charge.runs).toBe(1);
    client.abort();
    await expect(first).rejects.toThrow(/abort/i);
    expect((await post(origin)).status).toBe(409);
    open();
    await expect.poll(async () => (await post(origin)).status).toBe(201);
    expect(charge.runs).toBe(1);
  });

  it('tells a handler outside the engine that its client is gone', async () => {
    const arrived = gate<AbortSignal>();
    const origin = await listen(async request => {
      arrived.open(request.signal);
      return new Promise<Response>(() => {});
    });
    const client = new AbortController();
    const sent = post(origin, { signal: client.signal });
    const signal = await arrived.opened;
    client.abort();
    await expect(sent).rejects.toThrow(/abort/i);
    await expect.poll(() => signal.aborted).toBe(true);
  });

  it('53: streams a live answer as it comes', async () => {
    const { opened, open } = gate();
    const charge = chargeServer(() => {
      const body = new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(new TextEncoder().encode('data: 1\n\n'));
          await opened;
          controller.close();
        },
      });
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    });
    const response = await post(await listen(charge.handler));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: 1\n\n');
    open();
    expect((await reader.read()).done).toBe(true);
  });

  it('C36: takes and gives 5 MB, and replays what it stored', async () => {
    const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme', maxAnswerBytes: 6_000_000 });
    const origin = await listen(request => dedup.handle(request, async own => new Response(await own.arrayBuffer()), { name: 'echo' }));
    const body = new Uint8Array(5_000_000).map((_, index) => index % 251);
    for (let sent = 0; sent < 2; sent += 1) {
      const echoed = await (await post(origin, { body, headers: { 'idempotency-key': 'k', 'content-type': 'application/octet-stream' } })).bytes();
      expect(Buffer.compare(echoed, body)).toBe(0);
    }
  });

  it('refuses a body over the limit without reading it', async () => {
    const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme', maxRequestBytes: 1_000 });
    const origin = await listen(request => dedup.handle(request, () => new Response('ok'), { name: 'charge' }));
    expect((await post(origin, { body: 'x'.repeat(1_001) })).status).toBe(413);
    expect((await post(origin, { body: 'x'.repeat(1_000) })).status).toBe(200);
  });

  it('answers 500 when a handler throws and 400 when the request makes no sense, and reports both', async () => {
    const errors: unknown[] = [];
    const origin = await listen(() => {
      throw new Error('boom');
    }, error => errors.push(error));
    expect((await post(origin)).status).toBe(500);
    const strange = await new Promise<IncomingMessage>((resolve, reject) => {
      httpRequest(`${origin}/`, { headers: { host: 'a b' } }, resolve).on('error', reject).end();
    });
    expect(strange.statusCode).toBe(400);
    expect(errors).toHaveLength(2);
  });

  it('answers 500 when a handler gives nothing, and says that it should', async () => {
    const errors: unknown[] = [];
    const origin = await listen(() => undefined as unknown as Response, error => errors.push(error));
    expect((await post(origin)).status).toBe(500);
    expect(errors).toEqual([new TypeError('The handler gave no Response, but one was expected. Return one for every request, a 404 for those that are not its business.')]);
  });

  it('sends no body to HEAD', async () => {
    const response = await fetch(await listen(() => new Response('body')), { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  it('28: runs one of 50 requests at once over real connections', async () => {
    const charge = chargeServer(() => new Response('done', { status: 201 }));
    const origin = await listen(charge.handler);
    const responses = await Promise.all(Array.from({ length: 50 }, () => post(origin)));
    for (const { status } of responses) expect([201, 409]).toContain(status);
    expect(charge.runs).toBe(1);
  });
});
