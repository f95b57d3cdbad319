import { createServer } from 'node:http';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import { toNodeScenarioListener, type Scenarios, type Server } from '../../src/testing/conformance.js';
import { listen } from '../../test/server/support/serve-node.js';

/** What a library puts between the app and the route. */
export interface Mount {
  readonly middleware: RequestHandler;
  /** The route. @default the scenario handler */
  readonly route?: ((listener: RequestHandler) => RequestHandler) | undefined;
  /** What the library wants to know of errors. */
  readonly onError?: ErrorRequestHandler | undefined;
}

/** Larger than the largest body of a case. */
const LIMIT = '20mb';

const PROTECTED: ReadonlySet<string> = new Set(['POST', 'PATCH']);

/** In front of the library, as a login is. */
const guard: RequestHandler = (request, response, next) => {
  const status = request.get('scenario-guard');
  if (status === undefined) next();
  else response.sendStatus(Number(status));
};

/**
 * What `express.json()` makes of JSON. What it cannot parse, and every other body, reaches the libraries as bytes: they
 * could compare nothing otherwise.
 */
const parse: RequestHandler = (request, _response, next) => {
  const bytes: unknown = request.body;
  if (bytes instanceof Buffer && request.is('json')) {
    try {
      request.body = JSON.parse(bytes.toString()) as unknown;
    } catch {}
  }
  next();
};

/** As a server has it that tells no client of its errors. */
const tellStatusOnly: ErrorRequestHandler = (_error, _request, response, next) => {
  if (response.headersSent) return next(_error);
  response.status(response.statusCode >= 400 ? response.statusCode : 500).json({ error: 'refused' });
};

/** An Express app as the README of a library shows it: parsers, the middleware on POST and PATCH, the route. */
export const openExpress = async (scenarios: Scenarios, { middleware, route = listener => listener, onError }: Mount): Promise<Server & { close(): Promise<void> }> => {
  const protect: RequestHandler = (request, response, next) => (PROTECTED.has(request.method) ? middleware(request, response, next) : next());
  const app = express().set('env', 'test').disable('etag');
  app.use(guard, express.raw({ type: () => true, limit: LIMIT }), parse, protect, route(toNodeScenarioListener(scenarios)));
  if (onError) app.use(onError);
  app.use(tellStatusOnly);
  const server = createServer(app);
  const { close, ...door } = await listen(server);
  return {
    ...door,
    close: async () => close?.(),
    /** Accepts no more, and ends what it has. */
    shutdown: () => new Promise<void>(resolve => server.close(() => resolve())),
  };
};
