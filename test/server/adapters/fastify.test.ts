import compress from '@fastify/compress';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions, type RouteShorthandOptions } from 'fastify';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { idempotency, idempotencyOf, platformRequestOf } from '../../../src/server/adapters/fastify.js';
import { RetryableError, type Dedup, type DedupOptions } from '../../../src/server/index.js';
import { bePatient } from '../../support/patience.js';
import { codeOf, dedupOf, gate, post, postRaw, replayed } from './serving.js';

bePatient();

declare module 'fastify' {
  interface FastifyRequest {
    user?: string;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'samekey-fastify-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, bytes: Uint8Array | string): string => {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
};

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) {
    app.server.closeAllConnections();
    await app.close();
  }
});

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

interface Endpoint {
  readonly url: string;
  readonly app: FastifyInstance;
  readonly dedup: Dedup;
  readonly runs: number;
}

interface Around {
  readonly before?: (app: FastifyInstance) => unknown;
  readonly after?: (app: FastifyInstance) => unknown;
  readonly route?: RouteShorthandOptions;
  readonly options?: Partial<DedupOptions>;
  readonly server?: FastifyServerOptions;
}

/** POST /charges with a handler that counts. `before` and `after` register what comes before and after the plugin. */
const charges = async (handler: Handler, { before, after, route = {}, options = {}, server = {} }: Around = {}): Promise<Endpoint> => {
  const app = fastify(server);
  apps.push(app);
  const dedup = dedupOf(options);
  let runs = 0;
  await before?.(app);
  await app.register(idempotency, { dedup });
  await after?.(app);
  app.route({
    ...route,
    method: route.schema ? ['POST'] : ['GET', 'POST'], url: '/charges', config: { idempotency: { name: 'charge' } },
    handler: (request, reply) => {
      runs += 1;
      return handler(request, reply);
    },
  });
  return {
    url: `${await app.listen({ port: 0, host: '127.0.0.1' })}/charges`,
    app,
    dedup,
    get runs() {
      return runs;
    },
  };
};

const twice = async (endpoint: Endpoint): Promise<[Response, Response]> => {
  const first = await post(endpoint.url);
  await first.clone().bytes();
  return [first, await post(endpoint.url)];
};

const noise = (length: number): Uint8Array<ArrayBuffer> => Uint8Array.from({ length }, (_, index) => (index * 31) % 251);

const asBuffer = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

describe('what a handler replies', () => {
  const ways: Record<string, Handler> = {
    'a returned object': (_request, reply) => void reply.code(201).header('location', '/charges/1').send({ id: 1 }),
    'an async return': async (_request, reply) => {
      reply.code(201).header('etag', '"v1"');
      return { id: 1 };
    },
    'return reply after reply.send': async (_request, reply) => reply.code(202).send({ id: 1 }),
    'reply.send in an async handler that returns nothing': async (_request, reply) => void reply.code(201).send({ id: 1 }),
    text: (_request, reply) => void reply.type('text/csv').send('id\n1\n'),
    bytes: (_request, reply) => void reply.send(Buffer.from([0xff, 0xfe, 0x00, 0x80])),
    'no body': (_request, reply) => void reply.send(),
    'a stream': (_request, reply) => void reply.type('application/octet-stream').send(Readable.from([noise(100_000), noise(50_000)])),
    'a stream of text': (_request, reply) => void reply.type('text/plain').send(Readable.from(['one ', 'two'])),
    'a file': (_request, reply) => void reply.type('application/octet-stream').send(createReadStream(file('small.bin', noise(200_000)))),
    'a web stream': (_request, reply) => void reply.type('text/plain').send(new Response('web').body),
    'a fetch response': async () => new Response('made', { status: 201, headers: { 'x-custom': 'kept', 'content-type': 'text/plain' } }),
    'a redirect': (_request, reply) => void reply.redirect('/charges/1', 303),
    'a hijacked raw response': (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(201, { 'x-custom': 'kept', 'content-type': 'text/plain' });
      reply.raw.write('one ');
      reply.raw.end('two');
    },
    'later, from a callback': (_request, reply) => void setImmediate(() => void reply.send({ late: true })),
  };

  it.each(Object.entries(ways))('C90: %s is stored, and replayed byte by byte', async (_name, handler) => {
    const endpoint = await charges(handler);
    const fetchOnce = (): Promise<Response> => post(endpoint.url, { redirect: 'manual' });
    const first = await fetchOnce();
    const body = await asBuffer(first);
    const second = await fetchOnce();
    expect([second.status, replayed(first), replayed(second), endpoint.runs]).toEqual([first.status, false, true, 1]);
    expect(first.headers.get('idempotency-status')).toBe('stored');
    expect(Buffer.compare(await asBuffer(second), body)).toBe(0);
    for (const name of ['content-type', 'location', 'etag', 'x-custom']) expect(second.headers.get(name)).toBe(first.headers.get(name));
  });

  it('C90: what is replayed is what was replied', async () => {
    const expected: Record<string, string> = {
      'a returned object': '{"id":1}', 'reply.send in an async handler that returns nothing': '{"id":1}', 'a stream of text': 'one two', 'a fetch response': 'made', 'a hijacked raw response': 'one two',
    };
    for (const [name, text] of Object.entries(expected)) {
      const [first, second] = await twice(await charges(ways[name] as Handler));
      expect([await first.text(), await second.text()], name).toEqual([text, text]);
    }
    expect((await asBuffer(await post((await charges(ways['a file'] as Handler)).url))).length).toBe(200_000);
  });

  it('C88: 204 and 304 go out and are replayed without a body', async () => {
    for (const status of [204, 304]) {
      const [first, second] = await twice(await charges((_request, reply) => void reply.code(status).send()));
      expect([first.status, await first.text(), second.status, await second.text(), replayed(second)]).toEqual([status, '', status, '', true]);
    }
  });

  it('5, C86: the first answer has all its cookies, a replay has none of them but those around it', async () => {
    const cookie = (value: string) => (_request: unknown, reply: FastifyReply, done: () => void) => {
      reply.header('set-cookie', value);
      done();
    };
    const endpoint = await charges((_request, reply) => void reply.header('set-cookie', 'a=1').header('set-cookie', 'b=2').send({}), { before: app => app.addHook('onRequest', cookie('session=s')) });
    const [first, second] = await twice(endpoint);
    expect(first.headers.getSetCookie()).toEqual(['session=s', 'a=1', 'b=2']);
    expect(second.headers.getSetCookie()).toEqual(['session=s']);
  });

  it('what hooks of the instance make of a payload is stored as it is, and not made twice', async () => {
    const wrap = async (_request: unknown, _reply: unknown, payload: unknown): Promise<unknown> => `<${String(payload)}>`;
    for (const when of ['before', 'after'] as const) {
      const endpoint = await charges(async () => 'x', { [when]: (app: FastifyInstance) => app.addHook('onSend', wrap) });
      const [first, second] = await twice(endpoint);
      expect([await first.text(), await second.text(), replayed(second)], when).toEqual(['<x>', '<x>', true]);
    }
  });

  it('is replayed through inject, too', async () => {
    const endpoint = await charges(async () => ({ id: 1 }));
    const inject = () => endpoint.app.inject({ method: 'POST', url: '/charges', payload: { amount: 1 }, headers: { 'idempotency-key': 'i' } });
    const [first, second] = [await inject(), await inject()];
    expect([first.json(), second.json(), second.headers['idempotent-replayed'], endpoint.runs]).toEqual([{ id: 1 }, { id: 1 }, 'true', 1]);
  });
});

describe('what goes around it', () => {
  it('11: GET runs every time, untouched, and says that the key was ignored', async () => {
    const endpoint = await charges((_request, reply) => void reply.send(createReadStream(file('get.txt', 'x'.repeat(3_000_000)))));
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
    apps.push(app);
    await app.register(idempotency, { dedup: dedupOf() });
    await app.register(async child => void child.post('/deep', { config: { idempotency: { name: 'deep' } } }, () => 'x'), { prefix: '/v1' });
    expect(() => app.post('/nameless', { config: { idempotency: {} } }, async () => 'x')).toThrow('without a name');
    const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/v1/deep`;
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

describe('bodies', () => {
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

describe('compression', () => {
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

describe('long answers', () => {
  it('52, C90: one over the limit goes out whole, and is never run again', async () => {
    const handlers: Handler[] = [
      (_request, reply) => void reply.code(201).send(Buffer.from(noise(2_000_000))),
      (_request, reply) => void reply.code(201).send(createReadStream(file('over.bin', noise(2_000_000)))),
    ];
    for (const handler of handlers) {
      const endpoint = await charges(handler);
      expect(Buffer.compare(await asBuffer(await post(endpoint.url)), noise(2_000_000))).toBe(0);
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

describe('a client that leaves', () => {
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
    const expected = await asBuffer(await post((await charges(handler(Promise.resolve()))).url));
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
    expect(Buffer.compare(await asBuffer(replay), expected)).toBe(0);
    process.off('unhandledRejection', note).off('uncaughtException', note);
    expect(unhandled).toEqual([]);
  });
});

describe('errors', () => {
  const failing = (error: Error): Handler => {
    let runs = 0;
    return async (_request, reply) => {
      runs += 1;
      if (runs === 1) throw error;
      reply.code(201);
      return { runs };
    };
  };

  it('47: what a handler throws is answered by Fastify, not stored, and the same request runs again', async () => {
    const sync: Handler = (_request, reply) => {
      if (endpoint.runs === 1) throw new Error('boom');
      return reply.code(201).send({});
    };
    let endpoint: Endpoint;
    for (const handler of [failing(new Error('boom')), sync]) {
      endpoint = await charges(handler);
      const first = await post(endpoint.url);
      expect([first.status, await first.json(), first.headers.get('idempotency-status')]).toEqual([500, expect.objectContaining({ message: 'boom' }), null]);
      expect([(await post(endpoint.url, { body: '{}' })).status, (await post(endpoint.url)).status, endpoint.runs]).toEqual([422, 201, 2]);
    }
  });

  it('45: an error handler that answers 400 gives an answer like any other', async () => {
    const endpoint = await charges(failing(new Error('amount is missing')), {
      before: app => void app.setErrorHandler((error: Error, _request, reply) => reply.code(400).send({ error: error.message })),
    });
    const [first, second] = await twice(endpoint);
    expect([first.status, second.status, await second.json(), replayed(second), endpoint.runs]).toEqual([400, 400, { error: 'amount is missing' }, true, 1]);
  });

  it('47: after an announced effect it leaves doubt, unless the handler says that it was undone', async () => {
    const doubtful = await charges(async request => {
      await idempotencyOf(doubtful.dedup, request).effectStarted();
      throw new Error('boom');
    });
    expect((await post(doubtful.url)).status).toBe(500);
    expect(await codeOf(await post(doubtful.url))).toBe('idempotency_indeterminate');
    const undone = await charges(async request => {
      if (undone.runs > 1) return 'ok';
      await idempotencyOf(undone.dedup, request).effectStarted();
      throw new RetryableError('The charge was refunded at once.');
    });
    const first = await post(undone.url);
    expect([first.status, await first.json()]).toEqual([500, expect.objectContaining({ message: 'The charge was refunded at once.' })]);
    expect([(await post(undone.url)).status, undone.runs]).toEqual([200, 2]);
  });

  it('a handler that sends and then throws has answered', async () => {
    const endpoint = await charges(async (_request, reply) => {
      void reply.code(201).send({ id: 1 });
      throw new Error('too late');
    });
    const [first, second] = await twice(endpoint);
    expect([first.status, await first.json(), await second.json(), endpoint.runs]).toEqual([201, { id: 1 }, { id: 1 }, 1]);
  });

  it('an answer that breaks off half way is a failure for its client, and not run again', async () => {
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield noise(1_000);
      throw new Error('boom');
    };
    const endpoint = await charges((_request, reply) => void reply.code(201).send(Readable.from(broken())));
    const first = await post(endpoint.url);
    expect([first.status, await first.json()]).toEqual([500, expect.objectContaining({ message: 'boom' })]);
    expect(await (await post(endpoint.url)).json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201 });
    expect(endpoint.runs).toBe(1);
  });

  it('49: nothing runs when the store is down', async () => {
    const endpoint = await charges(async () => 'x', {
      options: { store: { claim: () => Promise.reject(new Error('down')) } as unknown as DedupOptions['store'], clock: { now: () => 0, sleep: async () => {} } },
    });
    const response = await post(endpoint.url);
    expect([response.status, response.headers.get('retry-after'), endpoint.runs]).toEqual([503, '1', 0]);
  });

  it('what scope throws goes to Fastify’s error handler', async () => {
    const endpoint = await charges(async () => 'x', { options: { scope: () => { throw new Error('no directory'); } } });
    const response = await post(endpoint.url);
    expect([response.status, await response.json(), endpoint.runs]).toEqual([500, expect.objectContaining({ message: 'no directory' }), 0]);
  });
});

describe('at once', () => {
  it('28: runs one of 50 requests', async () => {
    const endpoint = await charges((_request, reply) => void setImmediate(() => void reply.code(201).send({ id: 1 })));
    const responses = await Promise.all(Array.from({ length: 50 }, () => post(endpoint.url)));
    for (const { status } of responses) expect([201, 409]).toContain(status);
    expect(endpoint.runs).toBe(1);
  });

  it('44: close of the app and idle wait for handlers that are under way', async () => {
    const { opened, open } = gate();
    const endpoint = await charges(async (_request, reply) => {
      await opened;
      reply.code(201);
      return {};
    });
    const first = post(endpoint.url, { headers: { connection: 'close' } });
    await expect.poll(() => endpoint.runs).toBe(1);
    let isIdle = false;
    const idle = Promise.all([endpoint.app.close(), endpoint.dedup.idle()]).then(() => (isIdle = true));
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(isIdle).toBe(false);
    open();
    expect((await first).status).toBe(201);
    await idle;
  });
});
