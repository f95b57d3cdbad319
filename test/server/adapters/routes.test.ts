import express, { Router, type RequestHandler } from 'express';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { idempotent } from '../../../src/server/adapters/express.js';
import { idempotency } from '../../../src/server/adapters/fastify.js';
import { bePatient } from '../../support/patience.js';
import { serveApp } from './fastify/charges.js';
import { bytesOf, dedupOf, fileOf, post, replayed, serve } from './serving.js';

bePatient();

/** What an application has registered, and how often its handlers ran. */
interface Application {
  readonly origin: string;
  readonly routes: readonly string[];
  runs(route: string): number;
}

const counter = (): { count(route: string): void; runs(route: string): number } => {
  const counts = new Map<string, number>();
  const runs = (route: string): number => counts.get(route) ?? 0;
  return { runs, count: route => void counts.set(route, runs(route) + 1) };
};

const expressApplication = async (): Promise<Application> => {
  const { count, runs } = counter();
  const dedup = dedupOf();
  const shop = Router();
  const ways: Record<string, RequestHandler> = {
    '/charges': (_req, res) => void res.status(201).json({ id: 1 }),
    '/charges/:id/refunds': (req, res) => void res.status(201).json({ refunded: req.params['id'] }),
    '/orders': (_req, res) => res.redirect(303, '/orders/1'),
    '/exports': (_req, res) => res.sendFile(fileOf('export.csv', 'id\n1\n')),
    '/streams': (_req, res) => void Readable.from(['one ', 'two']).pipe(res),
    '/raw': (_req, res) => void res.writeHead(200).end(Buffer.from([0xff, 0x00])),
    '/nothing': (_req, res) => void res.sendStatus(204),
    '/scheduled': (_req, res) => void setTimeout(() => res.status(202).end(), 5),
    '/invalid': (_req, res) => void res.status(422).json({ error: 'amount is missing' }),
  };
  for (const [route, handler] of Object.entries(ways)) {
    shop.post(route, idempotent(dedup, { name: route }), express.json(), (req, res, next) => {
      count(route);
      return handler(req, res, next);
    });
  }
  const routes = shop.stack.map(layer => layer.route?.path).filter(path => path !== undefined);
  return { origin: `${await serve(express().use('/v1', shop))}/v1`, routes, runs };
};

const fastifyApplication = async (): Promise<Application> => {
  const { count, runs } = counter();
  const app: FastifyInstance = fastify();
  await app.register(idempotency, { dedup: dedupOf() });
  const routes: string[] = [];
  app.addHook('onRoute', ({ routePath }) => void routes.push(routePath));
  const ways: Record<string, (request: FastifyRequest, reply: FastifyReply) => unknown> = {
    '/charges': async (_request, reply) => reply.code(201).send({ id: 1 }),
    '/charges/:id/refunds': async request => ({ refunded: (request.params as { id: string }).id }),
    '/orders': (_request, reply) => reply.redirect('/orders/1', 303),
    '/streams': (_request, reply) => reply.send(Readable.from(['one ', 'two'])),
    '/raw': (_request, reply) => void reply.hijack().raw.writeHead(200).end(Buffer.from([0xff, 0x00])),
    '/nothing': (_request, reply) => reply.code(204).send(),
    '/scheduled': (_request, reply) => void setTimeout(() => void reply.code(202).send(), 5),
    '/invalid': (_request, reply) => reply.code(422).send({ error: 'amount is missing' }),
  };
  await app.register(async shop => {
    for (const [route, handler] of Object.entries(ways)) {
      shop.post(route, { config: { idempotency: { name: route } } }, (request, reply) => {
        count(route);
        return handler(request, reply);
      });
    }
  }, { prefix: '/v1' });
  return { origin: `${await serveApp(app)}/v1`, routes, runs };
};

describe.each([['Express', expressApplication], ['Fastify', fastifyApplication]])('C91: every route that is registered in %s', (_name, create) => {
  it('replays what it answered, and runs once', async () => {
    const { origin, routes, runs } = await create();
    expect(routes.length).toBeGreaterThan(7);
    for (const route of routes) {
      const url = origin + route.replace(':id', '7');
      const first = await post(url, { redirect: 'manual' });
      const body = await bytesOf(first);
      const second = await post(url, { redirect: 'manual' });
      expect([second.status, replayed(first), replayed(second), runs(route)], route).toEqual([first.status, false, true, 1]);
      expect(first.status, route).not.toBe(404);
      expect(Buffer.compare(await bytesOf(second), body), route).toBe(0);
    }
  });
});
