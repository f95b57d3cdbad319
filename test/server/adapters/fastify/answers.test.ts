import { type FastifyInstance, type FastifyReply } from 'fastify';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { bePatient } from '../../../support/patience.js';
import { bytesOf, fileOf, noise, post, replayed, twice } from '../serving.js';
import { charges, type Handler } from './charges.js';

bePatient();

describe('Fastify: what a handler replies', () => {
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
    'a file': (_request, reply) => void reply.type('application/octet-stream').send(createReadStream(fileOf('small.bin', noise(200_000)))),
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
    const body = await bytesOf(first);
    const second = await fetchOnce();
    expect([second.status, replayed(first), replayed(second), endpoint.runs]).toEqual([first.status, false, true, 1]);
    expect(first.headers.get('idempotency-status')).toBe('stored');
    expect(Buffer.compare(await bytesOf(second), body)).toBe(0);
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
    expect((await bytesOf(await post((await charges(ways['a file'] as Handler)).url))).length).toBe(200_000);
  });

  it('6: a whole answer has a length, and its replay, too', async () => {
    const [first, second] = await twice(await charges(async () => 'done'));
    expect([first.headers.get('content-length'), second.headers.get('content-length')]).toEqual(['4', '4']);
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
