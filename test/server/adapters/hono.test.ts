import { Hono, type MiddlewareHandler } from 'hono';
import { compress } from 'hono/compress';
import { cors } from 'hono/cors';
import { streamSSE } from 'hono/streaming';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { toNodeListener } from '../../../src/server/adapters/node.js';
import type { Dedup, HandlerContext } from '../../../src/server/index.js';
import { bePatient } from '../../support/patience.js';
import { bytesOf, codeOf, dedupOf, gate, noise, post, postRaw, replayed, serve, twice } from './serving.js';

bePatient();

interface Env {
  Variables: { idempotency: HandlerContext };
}

/** As the README shows it. */
const idempotent =
  (dedup: Dedup, name: string): MiddlewareHandler<Env> =>
  async (c, next) => {
    const { raw } = c.req;
    const run = async (request: Request, context: HandlerContext): Promise<Response> => {
      c.req.raw = request;
      c.set('idempotency', context);
      await next();
      return c.res;
    };
    const answer = await dedup.handle(raw, run, { name });
    c.req.raw = raw;
    return answer;
  };

const served = (app: Hono<Env>): Promise<string> => serve(toNodeListener(request => app.fetch(request)));

describe('Hono', () => {
  it('2: dedup.handle is a handler of it', async () => {
    const dedup = dedupOf();
    let runs = 0;
    const app = new Hono<Env>();
    app.post('/charges', c =>
      dedup.handle(c.req.raw, async request => Response.json({ run: (runs += 1), ...((await request.json()) as object) }, { status: 201 }), { name: 'charge' }));
    const [first, second] = await twice({ url: `${await served(app)}/charges` });
    expect([first.status, await first.json(), await second.json(), replayed(second), runs]).toEqual([201, { run: 1, amount: 4200 }, { run: 1, amount: 4200 }, true, 1]);
  });

  it('2, C86, C90: as middleware it replays what handlers answer: JSON, bytes, cookies, streams', async () => {
    const app = new Hono<Env>();
    app.use(idempotent(dedupOf(), 'charge'));
    app.post('/json', async c => c.json({ ...(await c.req.json<object>()), key: c.get('idempotency').key }, 201, { location: '/charges/1' }));
    app.post('/bytes', c => c.body(noise(100_000)));
    app.post('/none', c => c.body(null, 204));
    app.post('/cookies', c => {
      for (const cookie of ['a=1', 'b=2']) c.header('set-cookie', cookie, { append: true });
      return c.text('ok');
    });
    const origin = await served(app);
    for (const path of ['/json', '/bytes', '/none', '/cookies']) {
      const [first, second] = [await post(origin + path, { key: path }), await post(origin + path, { key: path })];
      expect([second.status, replayed(second), second.headers.get('location')], path).toEqual([first.status, true, first.headers.get('location')]);
      expect([first.headers.getSetCookie(), second.headers.getSetCookie()], path).toEqual([path === '/cookies' ? ['a=1', 'b=2'] : [], []]);
      expect(Buffer.compare(await bytesOf(first), await bytesOf(second)), path).toBe(0);
    }
    expect(await (await post(`${origin}/json`, { key: '/json' })).json()).toEqual({ amount: 4200, key: '/json' });
  });

  it('47: what its error handler answers is not stored', async () => {
    let runs = 0;
    const app = new Hono<Env>();
    app.use(idempotent(dedupOf(), 'charge')).onError((error, c) => c.json({ error: error.message }, 500));
    app.post('/charges', c => {
      runs += 1;
      if (runs === 1) throw new Error('boom');
      return c.json({ runs }, 201);
    });
    const [first, second] = await twice({ url: `${await served(app)}/charges` });
    expect([first.status, await first.json(), second.status, replayed(second)]).toEqual([500, { error: 'boom' }, 201, false]);
  });

  it.each(['around', 'inside'])('compression %s it: a client that did not ask for gzip never gets it', async where => {
    const text = 'line\n'.repeat(1_000);
    const around = idempotent(dedupOf(), 'charge');
    const app = new Hono<Env>();
    if (where === 'around') app.use(compress()).use(around);
    else app.use(around).use(compress());
    app.post('/charges', c => c.text(text));
    const url = `${await served(app)}/charges`;
    const encodings: unknown[] = [];
    for (const headers of [{ 'accept-encoding': 'gzip' }, {}, { 'accept-encoding': 'gzip' }]) {
      const { headers: got, body } = await postRaw(url, headers);
      encodings.push(got['content-encoding']);
      expect((got['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()).toBe(text);
    }
    expect(encodings).toEqual(where === 'around' ? ['gzip', undefined, 'gzip'] : [undefined, undefined, undefined]);
  });

  it('53: an event stream reaches its client live', async () => {
    const { opened, open } = gate();
    const app = new Hono<Env>();
    app.use(idempotent(dedupOf(), 'charge'));
    app.post('/charges', c =>
      streamSSE(c, async stream => {
        await stream.writeSSE({ data: '1' });
        await opened;
        await stream.writeSSE({ data: '2' });
      }));
    const url = `${await served(app)}/charges`;
    const response = await post(url);
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    expect((await reader.read()).value).toBe('data: 1\n\n');
    expect(await codeOf(await post(url))).toBe('idempotency_result_unavailable');
    open();
    expect([(await reader.read()).value, (await reader.read()).done]).toEqual(['data: 2\n\n', true]);
  });

  it('43: a client that leaves does not stop the run', async () => {
    const { opened, open } = gate();
    let runs = 0;
    const app = new Hono<Env>();
    app.use(idempotent(dedupOf(), 'charge'));
    app.post('/charges', async c => {
      runs += 1;
      await opened;
      return c.json({ aborted: c.req.raw.signal.aborted }, 201);
    });
    const url = `${await served(app)}/charges`;
    const client = new AbortController();
    const left = post(url, { signal: client.signal }).catch((error: unknown) => error);
    await expect.poll(() => runs).toBe(1);
    client.abort();
    await left;
    expect((await post(url)).status).toBe(409);
    open();
    await expect.poll(async () => (await post(url)).status).toBe(201);
    expect([await (await post(url)).json(), runs]).toEqual([{ aborted: false }, 1]);
  });

  it('58, C13: with its CORS around it the page reads the markers', async () => {
    const app = new Hono<Env>();
    app.use(cors({ origin: 'https://page.example', allowHeaders: ['Idempotency-Key', 'Content-Type'] })).use(idempotent(dedupOf(), 'charge'));
    app.post('/charges', c => c.json({}));
    const url = `${await served(app)}/charges`;
    for (const isReplay of [false, true]) {
      const response = await post(url, { headers: { origin: 'https://page.example' } });
      expect([replayed(response), response.headers.get('access-control-allow-origin')]).toEqual([isReplay, 'https://page.example']);
      expect(response.headers.get('access-control-expose-headers')).toContain('Idempotent-Replayed');
    }
  });
});
