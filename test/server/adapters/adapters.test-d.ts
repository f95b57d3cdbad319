import express from 'express';
import { expectTypeOf } from 'expect-type';
import fastify, { type FastifyPluginCallback } from 'fastify';
import { idempotencyOf, idempotent, idempotentErrors, platformRequestOf } from '../../../src/server/adapters/express.js';
import { idempotency, type FastifyIdempotencyOptions, type Idempotent } from '../../../src/server/adapters/fastify.js';
import { createDedup, type Dedup, type HandlerContext } from '../../../src/server/index.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';

interface Tx {
  query(text: string): Promise<void>;
}

declare const dedup: Dedup<Tx>;

// Express takes the middleware as it is, and its requests know what it adds.
const app = express();
app.use(idempotent(dedup, { name: 'charge' }));
app.post('/charges', idempotent(dedup, { name: 'charge', effects: 'idempotent' }), express.json(), (req, res) => {
  expectTypeOf(req.idempotency).toEqualTypeOf<HandlerContext | undefined>();
  expectTypeOf(idempotencyOf(dedup, req)).toEqualTypeOf<HandlerContext<Tx>>();
  expectTypeOf(idempotencyOf(dedup, req).transaction()).toEqualTypeOf<Promise<Tx>>();
  res.end();
});
app.use(idempotentErrors);

// What comes after it is typed as without it.
interface Charge {
  readonly amount: number;
}
app.post('/shops/:shop/charges', express.json(), idempotent(dedup, { name: 'charge' }), req => {
  expectTypeOf(req.body).toBeAny();
  expectTypeOf(req.params).toEqualTypeOf<{ shop: string }>();
});
app.post('/charges', idempotent(dedup, { name: 'charge' }), (req: express.Request<object, unknown, Charge>, res) => {
  expectTypeOf(req.body).toEqualTypeOf<Charge>();
  res.end();
});

// @ts-expect-error -- an endpoint has a name
idempotent(dedup, {});

createDedup({ store: memoryDedupStore(), scope: request => platformRequestOf<express.Request>(request)?.get('x-user') });

// Fastify takes the plugin as it is, and its routes take the configuration.
expectTypeOf(idempotency).toExtend<FastifyPluginCallback<FastifyIdempotencyOptions>>();
const server = fastify();
server.register(idempotency, { dedup });
// @ts-expect-error -- the plugin needs a dedup
server.register(idempotency, {});
server.post('/charges', { config: { idempotency: { name: 'charge' } } }, request => {
  expectTypeOf(idempotencyOf(dedup, request)).toEqualTypeOf<HandlerContext<Tx>>();
  expectTypeOf((request as typeof request & Idempotent).idempotency).toEqualTypeOf<HandlerContext | null>();
});
