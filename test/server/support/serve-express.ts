import express, { type RequestHandler } from 'express';
import { idempotent, idempotentErrors } from '../../../src/server/adapters/express.js';
import { requestFrom } from '../../../src/server/adapters/node-request.js';
import { sendResponse } from '../../../src/server/adapters/node-send.js';
import { PAGE_ORIGIN, toNodeScenarioListener } from '../../../src/testing/conformance.js';
import { listen } from './serve-node.js';
import type { Serve, Served } from './targets.js';

/** As the package cors does it. */
const cors: RequestHandler = (req, res, next) => {
  res.vary('Origin');
  if (req.get('origin') === PAGE_ORIGIN) res.set('access-control-allow-origin', PAGE_ORIGIN);
  if (req.method !== 'OPTIONS' || !req.get('access-control-request-method')) return next();
  res.set({ 'access-control-allow-methods': 'GET, POST, PATCH', 'access-control-allow-headers': 'Idempotency-Key, Content-Type' }).sendStatus(204);
};

const guarded = ({ guard }: Served): RequestHandler => (req, res, next) => {
  const refusal = guard(requestFrom(req, { body: '' }));
  if (refusal) void sendResponse(refusal, res);
  else next();
};

const appOf = (served: Served, before: readonly RequestHandler[]): ReturnType<typeof express> => {
  const { dedup, scenarios, nameOf } = served;
  const protect: RequestHandler = (req, res, next) => idempotent(dedup, { name: nameOf(req.originalUrl) })(req, res, next);
  return express().set('env', 'test').disable('etag').use(guarded(served), cors, ...before, protect, toNodeScenarioListener(scenarios), idempotentErrors);
};

/** Express as its users have it: the handler answers by `res.send` and `res.write`. */
export const overExpress: Serve = served => listen(appOf(served, []));

/** Behind a parser that has read the body before. */
export const overExpressAfterParser: Serve = served => listen(appOf(served, [express.raw({ type: () => true, limit: '20mb' })]));
