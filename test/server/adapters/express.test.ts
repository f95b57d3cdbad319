import compression from 'compression';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { idempotencyOf, idempotent, idempotentErrors, platformRequestOf } from '../../../src/server/adapters/express.js';
import { RetryableError, type Dedup, type DedupOptions } from '../../../src/server/index.js';
import { bePatient } from '../../support/patience.js';
import { codeOf, dedupOf, gate, post, postRaw, replayed, serve } from './serving.js';

bePatient();

const folder = mkdtempSync(join(tmpdir(), 'samekey-express-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, bytes: Uint8Array | string): string => {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
};

interface Endpoint {
  readonly url: string;
  readonly dedup: Dedup;
  readonly runs: number;
}

interface Around {
  readonly before?: RequestHandler[];
  readonly inside?: RequestHandler[];
  readonly after?: ErrorRequestHandler[];
  readonly options?: Partial<DedupOptions>;
  readonly app?: (app: Express) => void;
}

/** POST /charges with a handler that counts, in the middle of other middleware. */
const charges = async (handler: RequestHandler, { before = [], inside = [], after = [], options = {}, app: more }: Around = {}): Promise<Endpoint> => {
  const app = express().set('env', 'test');
  const dedup = dedupOf(options);
  let runs = 0;
  const counted: RequestHandler = (req, res, next) => {
    runs += 1;
    return handler(req, res, next);
  };
  app.all('/charges', ...before, idempotent(dedup, { name: 'charge' }), ...inside, counted);
  for (const middleware of after) app.use(middleware);
  more?.(app);
  return {
    url: `${await serve(app)}/charges`,
    dedup,
    get runs() {
      return runs;
    },
  };
};

/** The first answer and its replay. */
const twice = async (endpoint: Endpoint): Promise<[Response, Response]> => {
  const first = await post(endpoint.url);
  await first.clone().bytes();
  return [first, await post(endpoint.url)];
};

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

const noise = (length: number): Uint8Array<ArrayBuffer> => Uint8Array.from({ length }, (_, index) => (index * 31) % 251);

describe('what a handler writes to res', () => {
  const ways: Record<string, RequestHandler> = {
    'res.json': (_req, res) => void res.status(201).location('/charges/1').json({ id: 1 }),
    'res.send of text': (_req, res) => void res.type('text/csv').send('id\n1\n'),
    'res.send of bytes': (_req, res) => void res.send(Buffer.from([0xff, 0xfe, 0x00, 0x80])),
    'res.end': (_req, res) => void res.end('done'),
    'res.end without a body': (_req, res) => void res.end(),
    'res.write and res.end': (_req, res) => {
      res.writeHead(202, { 'x-custom': 'kept' });
      res.write('one ');
      res.write('74776f20', 'hex');
      res.end('three');
    },
    'writeHead with a flat list': (_req, res) => void res.writeHead(201, 'Made', ['Link', '</a>; rel=a', 'Link', '</b>; rel=b']).end('made'),
    'res.sendFile': (_req, res) => res.sendFile(file('small.bin', noise(200_000))),
    'res.redirect': (_req, res) => res.redirect(303, '/charges/1'),
    'res.sendStatus': (_req, res) => void res.sendStatus(202),
    'a piped stream': (_req, res) => void Readable.from([noise(100_000), noise(50_000)]).pipe(res.type('bin')),
    'a pipeline': async (_req, res) => pipeline(Readable.from([noise(100_000)]), res.type('bin')),
    'later, from a callback': (_req, res) => void setImmediate(() => res.json({ late: true })),
  };

  it.each(Object.entries(ways))('C90: %s is stored, and replayed byte by byte', async (_name, handler) => {
    const endpoint = await charges(handler);
    const fetchOnce = (): Promise<Response> => post(endpoint.url, { redirect: 'manual' });
    const first = await fetchOnce();
    const body = await bytesOf(first);
    const second = await fetchOnce();
    expect([second.status, replayed(first), replayed(second), endpoint.runs]).toEqual([first.status, false, true, 1]);
    expect(first.headers.get('idempotency-status')).toBe('stored');
    expect(Buffer.compare(await bytesOf(second), body)).toBe(0);
    for (const name of ['content-type', 'location', 'etag', 'link', 'x-custom']) expect(second.headers.get(name)).toBe(first.headers.get(name));
  });

  it('C90: the sizes are what was written', async () => {
    const sizes = Object.entries({ 'res.sendFile': 200_000, 'a piped stream': 150_000, 'a pipeline': 100_000 });
    for (const [name, size] of sizes) {
      const endpoint = await charges(ways[name] as RequestHandler);
      expect((await bytesOf(await post(endpoint.url))).length).toBe(size);
    }
  });

  it('C88: 204 and 304 go out and are replayed without a body', async () => {
    for (const status of [204, 304]) {
      const [first, second] = await twice(await charges((_req, res) => void res.status(status).end()));
      expect([first.status, await first.text(), second.status, await second.text(), replayed(second)]).toEqual([status, '', status, '', true]);
    }
  });

  it('5, C86: the first answer has all its cookies, a replay has none of them but those around it', async () => {
    const handler: RequestHandler = (_req, res) => void res.cookie('a', '1').cookie('b', '2').json({});
    const session: RequestHandler = (_req, res, next) => next(void res.cookie('session', 's'));
    const [first, second] = await twice(await charges(handler, { before: [session] }));
    expect(first.headers.getSetCookie().map(cookie => cookie.split(';')[0])).toEqual(['session=s', 'a=1', 'b=2']);
    expect(second.headers.getSetCookie().map(cookie => cookie.split(';')[0])).toEqual(['session=s']);
  });

  it('what stands around the handler sets its headers on every answer anew', async () => {
    let seen = 0;
    const around: RequestHandler = (_req, res, next) => next(void res.set({ 'x-seen': String((seen += 1)), vary: 'Origin' }));
    const [first, second] = await twice(await charges((_req, res) => void res.vary('Accept').json({}), { before: [around] }));
    expect([first.headers.get('x-seen'), second.headers.get('x-seen')]).toEqual(['1', '2']);
    expect([first.headers.get('vary'), second.headers.get('vary')]).toEqual(['Origin, Accept', 'Origin, Accept']);
  });

  it('a second answer meets the error that Express gives without us', async () => {
    const codes: unknown[] = [];
    const handler: RequestHandler = (_req, res) => {
      res.json({ first: true });
      try {
        res.json({ second: true });
      } catch (error) {
        codes.push((error as { code: unknown }).code);
      }
    };
    const [first] = await twice(await charges(handler));
    expect([codes, await first.json()]).toEqual([['ERR_HTTP_HEADERS_SENT'], { first: true }]);
  });

  it('listeners of the handler hear finish and close once, those around it when the client has the answer', async () => {
    const heard: string[] = [];
    const listen = (who: string): RequestHandler => (_req, res, next) => {
      res.on('finish', () => heard.push(`${who} finish`)).once('close', () => heard.push(`${who} close`));
      next();
    };
    const endpoint = await charges((_req, res) => void res.end('done'), { before: [listen('outer')], inside: [listen('inner')] });
    await (await post(endpoint.url)).text();
    await expect.poll(() => heard).toEqual(['inner finish', 'inner close', 'outer finish', 'outer close']);
  });
});

describe('what goes around it', () => {
  it('11: GET and HEAD run every time, untouched, and say that the key was ignored', async () => {
    const endpoint = await charges((_req, res) => res.sendFile(file('get.txt', 'x'.repeat(3_000_000))));
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

  it('refuses to protect a request twice', async () => {
    const dedup = dedupOf();
    const endpoint = await charges((_req, res) => void res.json({}), { inside: [idempotent(dedup, { name: 'inner' })] });
    const response = await post(endpoint.url);
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('protected already')]);
  });
});

describe('bodies', () => {
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
    const endpoint = await charges((req, res, next) => (req.get('x-iterate') ? iterate : size)(req, res, next));
    const pieces = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (const piece of ['one', 'two', 'three']) {
          controller.enqueue(new TextEncoder().encode(piece));
          await new Promise(resolve => setTimeout(resolve, 5));
        }
        controller.close();
      },
    });
    const empty = new ReadableStream({ start: controller => controller.close() });
    const lengthOf = async (key: string, body: BodyInit | null): Promise<unknown> => (await post(endpoint.url, { key, body, duplex: 'half' } as RequestInit)).json();
    expect(await lengthOf('k1', 'x'.repeat(70_000))).toEqual({ length: 70_000 });
    expect(await lengthOf('k2', '')).toEqual({ length: 0 });
    expect(await lengthOf('k3', pieces)).toEqual({ length: 11 });
    expect(await lengthOf('k4', empty)).toEqual({ length: 0 });
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

  it('refuses a body over the limit', async () => {
    const endpoint = await charges(echo, { inside: [express.json()], options: { maxRequestBytes: 1_000 } });
    expect((await post(endpoint.url, { body: JSON.stringify('x'.repeat(1_000)) })).status).toBe(413);
    expect([(await post(endpoint.url, { body: '{}' })).status, endpoint.runs]).toEqual([200, 1]);
  });
});

describe('compression', () => {
  const text = JSON.stringify({ lines: Array.from({ length: 500 }, (_, line) => `line ${line}`) });
  const handler: RequestHandler = (_req, res) => void res.type('json').send(text);
  const gzip = { 'accept-encoding': 'gzip' };

  it('around it encodes each answer for its client: first, replayed, with and without gzip', async () => {
    const endpoint = await charges(handler, { before: [compression()] });
    const encodings: unknown[] = [];
    for (const headers of [gzip, gzip, {}]) {
      const { headers: got, body } = await postRaw(endpoint.url, headers);
      encodings.push(got['content-encoding']);
      expect((got['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()).toBe(text);
    }
    expect([encodings, endpoint.runs]).toEqual([['gzip', 'gzip', undefined], 1]);
  });

  it('inside stores plain bytes: a client that did not ask for gzip never gets it', async () => {
    const endpoint = await charges(handler, { inside: [compression()] });
    for (const headers of [gzip, {}, gzip]) {
      const { headers: got, body } = await postRaw(endpoint.url, headers);
      expect([got['content-encoding'], body.toString() === text]).toEqual([undefined, true]);
    }
    expect(endpoint.runs).toBe(1);
  });

  it('around it does not hold a stream up that waits for the response to drain', async () => {
    const endpoint = await charges((_req, res) => res.sendFile(file('large.txt', 'x'.repeat(900_000))), { before: [compression()] });
    for (let sent = 0; sent < 2; sent += 1) expect(gunzipSync((await postRaw(endpoint.url, gzip)).body).length).toBe(900_000);
    expect(endpoint.runs).toBe(1);
  });
});

describe('long answers', () => {
  it('52, C90: one over the limit goes out whole, and is never run again', async () => {
    for (const [name, write] of Object.entries<RequestHandler>({
      end: (_req, res) => void res.status(201).end(noise(2_000_000)),
      file: (_req, res) => res.status(201).sendFile(file('over.bin', noise(2_000_000))),
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

describe('a client that leaves', () => {
  const leaving = (endpoint: Endpoint): { leave: () => void; left: Promise<unknown> } => {
    const client = new AbortController();
    const left = post(endpoint.url, { signal: client.signal }).catch((error: unknown) => error);
    return { leave: () => client.abort(), left };
  };

  const slow: Record<string, (opened: Promise<void>) => RequestHandler> = {
    'res.json': opened => async (_req, res) => {
      await opened;
      res.status(201).json({ open: [res.destroyed, res.writableEnded, res.socket?.destroyed] });
    },
    'writes in pieces': opened => async (_req, res) => {
      res.status(201).type('text').write('one ');
      await opened;
      res.write('two ');
      res.end('three');
    },
    'res.sendFile': opened => async (_req, res) => {
      await opened;
      res.status(201).sendFile(file('slow.bin', noise(300_000)));
    },
    'a pipeline': opened => async (_req, res) => {
      await opened;
      await pipeline(Readable.from([noise(100_000), noise(100_000)]), res.status(201));
    },
    'a pipeline that is under way': opened => async (_req, res) => {
      await pipeline(Readable.from((async function* () {
        yield noise(100_000);
        await opened;
        yield noise(100_000);
      })()), res.status(201));
    },
  };

  it.each(Object.entries(slow))('43, C99: during %s, does not stop it; its retry meets the run, then the answer', async (_name, handler) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note).on('uncaughtException', note);
    const { opened, open } = gate();
    const quick = handler(Promise.resolve());
    const expected = await bytesOf(await post((await charges(quick)).url));
    const endpoint = await charges(handler(opened));
    const { leave, left } = leaving(endpoint);
    await expect.poll(() => endpoint.runs).toBe(1);
    leave();
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

  it('43: before the body parser has run, does not make a bad request of it', async () => {
    const claimed = gate();
    const { opened, open } = gate();
    const dedupStore = (await import('../../../src/server/stores/memory.js')).memoryDedupStore();
    const store = { ...dedupStore, claim: async (claim: Parameters<typeof dedupStore.claim>[0]) => (claimed.open(), await opened, dedupStore.claim(claim)) };
    const endpoint = await charges((req, res) => void res.status(201).json(req.body), { inside: [express.json()], options: { store } });
    const { leave, left } = leaving(endpoint);
    await claimed.opened;
    leave();
    await left;
    await new Promise(resolve => setTimeout(resolve, 20));
    open();
    await expect.poll(() => endpoint.runs).toBe(1);
    const replay = await post(endpoint.url);
    expect([replay.status, await replay.json(), replayed(replay)]).toEqual([201, { amount: 4200 }, true]);
  });

  it('those around the handler hear that the client has left, when the answer is recorded', async () => {
    const { opened, open } = gate();
    const closed = gate();
    const outer: RequestHandler = (_req, res, next) => next(void res.on('close', () => closed.open()));
    const endpoint = await charges(async (_req, res) => void res.json(await opened), { before: [outer] });
    const { leave, left } = leaving(endpoint);
    await expect.poll(() => endpoint.runs).toBe(1);
    leave();
    await left;
    open();
    await closed.opened;
    expect(replayed(await post(endpoint.url))).toBe(true);
  });
});

describe('errors', () => {
  const answers = (status: number): ErrorRequestHandler => (error: Error, _req, res, _next) => void res.status(status).json({ error: error.message });
  const failing = (error: Error, times = 1): RequestHandler => {
    let runs = 0;
    return (_req, res) => {
      runs += 1;
      if (runs <= times) throw error;
      res.status(201).json({ runs });
    };
  };

  it('47: what a handler throws is answered by Express, not stored, and the same request runs again', async () => {
    for (const handler of [failing(new Error('boom')), ((_req, res, next) => (handled ? void res.status(201).json({}) : ((handled = true), next(new Error('boom'))))) as RequestHandler]) {
      const endpoint = await charges(handler, { after: [answers(500)] });
      const first = await post(endpoint.url);
      expect([first.status, await first.json(), first.headers.get('idempotency-status')]).toEqual([500, { error: 'boom' }, null]);
      expect([(await post(endpoint.url, { body: '{}' })).status, (await post(endpoint.url)).status, endpoint.runs]).toEqual([422, 201, 2]);
    }
  });
  let handled = false;

  it('47: a rejection without an error handler is Express’s own 500', async () => {
    const endpoint = await charges(async (_req, res) => (endpoint.runs === 1 ? Promise.reject(new Error('boom')) : void res.status(201).end()));
    const first = await post(endpoint.url);
    expect([first.status, (await first.text()).includes('boom'), (await post(endpoint.url)).status]).toEqual([500, true, 201]);
  });

  it('45: an error handler that answers 400 gives an answer like any other', async () => {
    const endpoint = await charges(failing(new Error('amount is missing')), { after: [answers(400)] });
    const [first, second] = await twice(endpoint);
    expect([first.status, second.status, await second.json(), replayed(second), endpoint.runs]).toEqual([400, 400, { error: 'amount is missing' }, true, 1]);
  });

  it('47: after an announced effect it leaves doubt', async () => {
    const endpoint = await charges(async req => {
      await req.idempotency?.effectStarted();
      throw new Error('boom');
    }, { after: [answers(500)] });
    expect((await post(endpoint.url)).status).toBe(500);
    expect(await codeOf(await post(endpoint.url))).toBe('idempotency_indeterminate');
  });

  it('47: after an announced effect that was undone the key is free, where idempotentErrors tells the engine', async () => {
    const endpoint = await charges(async (req, res) => {
      if (endpoint.runs > 1) return void res.status(201).end();
      await req.idempotency?.effectStarted();
      throw new RetryableError('The charge was refunded at once.');
    }, { after: [idempotentErrors, answers(503)] });
    const first = await post(endpoint.url);
    expect([first.status, await first.json()]).toEqual([503, { error: 'The charge was refunded at once.' }]);
    expect([(await post(endpoint.url)).status, endpoint.runs]).toEqual([201, 2]);
  });

  it('an answer that breaks off half way is cut off for its client, and not run again', async () => {
    const endpoint = await charges((_req, res) => {
      res.status(201).write('half');
      throw new Error('boom');
    });
    const first = await post(endpoint.url).then(response => response.text()).catch((error: unknown) => error);
    expect(first).toBeInstanceOf(Error);
    expect(await (await post(endpoint.url)).json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201 });
    expect(endpoint.runs).toBe(1);
  });

  it('a handler that destroys its response has failed', async () => {
    const endpoint = await charges((_req, res) => void (endpoint.runs === 1 ? res.destroy() : res.status(201).end()));
    expect(await codeOf(await post(endpoint.url))).toBe('handler_failed');
    expect((await post(endpoint.url)).status).toBe(201);
  });

  it('49: nothing runs when the store is down', async () => {
    const endpoint = await charges((_req, res) => void res.end(), {
      options: { store: { claim: () => Promise.reject(new Error('down')) } as unknown as DedupOptions['store'], clock: { now: () => 0, sleep: async () => {} } },
    });
    const response = await post(endpoint.url);
    expect([response.status, response.headers.get('retry-after'), endpoint.runs]).toEqual([503, '1', 0]);
  });

  it('what scope throws goes to Express’s error handlers', async () => {
    const endpoint = await charges((_req, res) => void res.end(), {
      options: { scope: () => { throw new Error('no directory'); } },
      after: [answers(502)],
    });
    const response = await post(endpoint.url);
    expect([response.status, await response.json(), endpoint.runs]).toEqual([502, { error: 'no directory' }, 0]);
  });
});

describe('at once', () => {
  it('28: runs one of 50 requests', async () => {
    const endpoint = await charges((_req, res) => void setImmediate(() => res.status(201).json({ id: 1 })));
    const responses = await Promise.all(Array.from({ length: 50 }, () => post(endpoint.url)));
    for (const { status } of responses) expect([201, 409]).toContain(status);
    expect(endpoint.runs).toBe(1);
  });

  it('44: idle waits for handlers that are under way', async () => {
    const { opened, open } = gate();
    const endpoint = await charges(async (_req, res) => {
      await opened;
      res.status(201).json({});
    });
    const first = post(endpoint.url);
    await expect.poll(() => endpoint.runs).toBe(1);
    let isIdle = false;
    const idle = endpoint.dedup.idle().then(() => (isIdle = true));
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(isIdle).toBe(false);
    open();
    await idle;
    expect((await first).status).toBe(201);
  });

  it('C91: a handler that is slow after its effect keeps its key', async () => {
    const { opened, open } = gate();
    const effects: number[] = [];
    const endpoint = await charges(async (_req, res) => {
      effects.push(1);
      await opened;
      res.status(201).json({});
    }, { options: { lease: 60 } });
    const first = post(endpoint.url);
    await expect.poll(() => effects.length).toBe(1);
    await new Promise(resolve => setTimeout(resolve, 200));
    expect([(await post(endpoint.url)).status, effects.length]).toEqual([409, 1]);
    open();
    expect([(await first).status, replayed(await post(endpoint.url))]).toEqual([201, true]);
  });
});
