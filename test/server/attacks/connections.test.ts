import express from 'express';
import Fastify from 'fastify';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { idempotent } from '../../../src/server/adapters/express.js';
import { idempotency } from '../../../src/server/adapters/fastify.js';
import { toNodeListener } from '../../../src/server/adapters/node.js';
import { bePatient } from '../../support/patience.js';
import { dedupOf, serve } from '../adapters/serving.js';

bePatient();

const NAME = { name: 'charge' };
/** bytes */
const MAX_BODY = 300_000;

const adapters: Record<string, () => Promise<string>> = {
  express: () => serve(express().set('env', 'test').use(idempotent(dedupOf({ maxRequestBytes: MAX_BODY }), NAME), (_req, res) => void res.send('charged'))),
  async fastify() {
    const app = Fastify();
    app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: 10 * MAX_BODY }, (_request, body, done) => done(null, body));
    await app.register(idempotency, { dedup: dedupOf({ maxRequestBytes: MAX_BODY }) });
    app.route({ method: ['POST', 'TRACE'], url: '/charges', config: { idempotency: NAME }, handler: async () => 'charged' });
    await app.ready();
    return serve(app.server);
  },
  node() {
    const dedup = dedupOf({ maxRequestBytes: MAX_BODY });
    return serve(toNodeListener(request => dedup.handle(request, () => new Response('charged'), NAME), { onError: () => {} }));
  },
};

const post = (lines: readonly string[], body: string): string => ['POST /charges HTTP/1.1', 'Host: x', 'Content-Type: text/plain', ...lines, '', body].join('\r\n');

const withLength = (lines: readonly string[], body: string): string => post([...lines, `Content-Length: ${body.length}`], body);
const chunked = (lines: readonly string[], body: string): string => post([...lines, 'Transfer-Encoding: chunked'], `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);

/** What one connection answers to what it is sent, as soon as there are so many answers. */
const answersOf = (origin: string, text: string, count: number): Promise<number[]> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    let received = '';
    const statuses = (): number[] => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    socket.setEncoding('latin1').on('error', reject).on('close', () => resolve(statuses()));
    socket.on('data', chunk => {
      received += String(chunk);
      if (statuses().length >= count) socket.destroy();
    });
    socket.write(text);
  });

const KEY = 'Idempotency-Key: k';

describe.each(Object.keys(adapters))('%s: a connection goes on after a request that was refused before its body was read', adapter => {
  const refused: Record<string, [number, string]> = {
    'without a key': [400, withLength([], 'x'.repeat(MAX_BODY))],
    'without a key, in chunks': [400, chunked([], 'x'.repeat(MAX_BODY))],
    'too large': [413, withLength([KEY], 'x'.repeat(3 * MAX_BODY))],
    'too large, in chunks': [413, chunked([KEY], 'x'.repeat(3 * MAX_BODY))],
  };
  it.each(Object.keys(refused))('%s', async name => {
    const [status, request] = refused[name] ?? [0, ''];
    const origin = await (adapters[adapter] as () => Promise<string>)();
    expect(await answersOf(origin, request + withLength(['Idempotency-Key: next'], 'x'), 2)).toEqual([status, 200]);
  });
});

describe.each(Object.keys(adapters))('%s: a request that makes no sense is the client’s fault', adapter => {
  it.each(['Host: a b', 'Host: user:password@x', 'Host: ['])('%s', async host => {
    const origin = await (adapters[adapter] as () => Promise<string>)();
    expect(await answersOf(origin, withLength([KEY], 'x').replace('Host: x', host), 1)).toEqual([400]);
  });

  it('TRACE, which fetch does not know', async () => {
    const origin = await (adapters[adapter] as () => Promise<string>)();
    expect(await answersOf(origin, 'TRACE /charges HTTP/1.1\r\nHost: x\r\n\r\n', 1)).toEqual([400]);
  });
});

it.each([[5], [{}], [[1, 2]]])('express: an answer that is neither text nor bytes is an error, as in Node, and no other answer: %j', async chunk => {
  const answers = [chunk, 'charged'];
  const app = express().set('env', 'test').use(idempotent(dedupOf(), NAME), (_req, res) => void res.end(answers.shift()));
  const origin = await serve(app);
  const text = withLength([KEY], 'x');
  expect([await answersOf(origin, text, 1), await answersOf(origin, text, 1)]).toEqual([[500], [200]]);
});
