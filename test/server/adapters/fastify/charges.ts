import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions, type RouteShorthandOptions } from 'fastify';
import { afterEach } from 'vitest';
import { idempotency } from '../../../../src/server/adapters/fastify.js';
import type { Dedup, DedupOptions } from '../../../../src/server/index.js';
import { dedupOf } from '../serving.js';

const apps: FastifyInstance[] = [];

afterEach(async () => {
  for (const app of apps.splice(0)) {
    app.server.closeAllConnections();
    await app.close();
  }
});

export type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

export interface Endpoint {
  readonly url: string;
  readonly app: FastifyInstance;
  readonly dedup: Dedup;
  /** How often the handler was entered. */
  readonly runs: number;
}

export interface Around {
  /** Registers what comes before the plugin. */
  readonly before?: (app: FastifyInstance) => unknown;
  /** Registers what comes after it. */
  readonly after?: (app: FastifyInstance) => unknown;
  readonly route?: RouteShorthandOptions;
  readonly options?: Partial<DedupOptions>;
  readonly server?: FastifyServerOptions;
}

/** Listens on a free port until the test ends, and returns the origin. */
export const serveApp = (app: FastifyInstance): Promise<string> => {
  apps.push(app);
  return app.listen({ port: 0, host: '127.0.0.1' });
};

/** The endpoint /charges of Fastify with a handler that counts. */
export const charges = async (handler: Handler, { before, after, route = {}, options = {}, server = {} }: Around = {}): Promise<Endpoint> => {
  const app = fastify(server);
  const dedup = dedupOf(options);
  let runs = 0;
  await before?.(app);
  await app.register(idempotency, { dedup });
  await after?.(app);
  app.route({
    ...route,
    // A GET route takes no schema of a body.
    method: route.schema ? ['POST'] : ['GET', 'POST'],
    url: '/charges',
    config: { idempotency: { name: 'charge' } },
    handler: (request, reply) => {
      runs += 1;
      return handler(request, reply);
    },
  });
  return {
    url: `${await serveApp(app)}/charges`,
    app,
    dedup,
    get runs() {
      return runs;
    },
  };
};
