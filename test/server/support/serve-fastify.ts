import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { idempotency, idempotencyOf } from '../../../src/server/adapters/fastify.js';
import { requestFrom } from '../../../src/server/adapters/node-request.js';
import { PAGE_ORIGIN, toNodeScenarioListener } from '../../../src/testing/conformance.js';
import { listen } from './serve-node.js';
import type { Serve, Served } from './targets.js';

/** As @fastify/cors does it. */
const cors = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
  reply.header('vary', 'Origin');
  if (request.headers.origin === PAGE_ORIGIN) reply.header('access-control-allow-origin', PAGE_ORIGIN);
  if (request.method !== 'OPTIONS' || !request.headers['access-control-request-method']) return undefined;
  return reply.headers({ 'access-control-allow-methods': 'GET, POST, PATCH', 'access-control-allow-headers': 'Idempotency-Key, Content-Type' }).code(204).send();
};

/** What comes first on the paths of the cases; each is an endpoint of its own. */
const NAMES = ['charges', 'refunds', 'charges:b', 'charges:refunds', 'harges'];

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

const appOf = async ({ dedup, guard, nameOf }: Served, handler: Handler): Promise<FastifyInstance> => {
  const app = fastify({ bodyLimit: 20_000_000, forceCloseConnections: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (request, reply) => {
    const refusal = guard(requestFrom(request.raw, { body: '' }));
    return refusal && reply.send(refusal);
  });
  app.addHook('onRequest', cors);
  await app.register(idempotency, { dedup });
  for (const name of NAMES) {
    // A colon begins a parameter there, and two mean one.
    const url = `/${name.replace(':', '::')}`;
    for (const each of [url, `${url}/*`]) app.all(each, { config: { idempotency: { name: nameOf(`/${name}`) } } }, handler);
  }
  await app.ready();
  return app;
};

/** Fastify as its users have it: the handler returns a fetch response. */
export const overFastify: Serve = async served => {
  const handler: Handler = request => {
    const body = request.body as Buffer<ArrayBuffer> | undefined;
    const { url, method } = request;
    const headers = new Headers(request.headers as Record<string, string>);
    return served.scenarios.handler(new Request(`http://scenario.test${url}`, { method, headers, ...(body && { body }) }), idempotencyOf(served.dedup, request));
  };
  const app = await appOf(served, handler);
  return listen(app.server);
};

/** The handler takes the raw response over. */
export const overHijackedFastify: Serve = async served => {
  const listener = toNodeScenarioListener(served.scenarios);
  const app = await appOf(served, async (request, reply) => {
    reply.hijack();
    // As Fastify leaves it to those who hijack.
    for (const [header, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(header, value ?? '');
    await listener(Object.assign(request.raw, { body: request.body, idempotency: idempotencyOf(served.dedup, request) }), reply.raw, error => reply.raw.destroy(error as Error));
  });
  return listen(app.server);
};
