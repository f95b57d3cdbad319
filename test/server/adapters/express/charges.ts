import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import { idempotent } from '../../../../src/server/adapters/express.js';
import type { Dedup, DedupOptions } from '../../../../src/server/index.js';
import { dedupOf, serve } from '../serving.js';

export interface Endpoint {
  readonly url: string;
  readonly dedup: Dedup;
  /** How often the handler was entered. */
  readonly runs: number;
}

export interface Around {
  /** Between the app and `idempotent`. */
  readonly before?: readonly RequestHandler[];
  /** Between `idempotent` and the handler. */
  readonly inside?: readonly RequestHandler[];
  readonly after?: readonly ErrorRequestHandler[];
  readonly options?: Partial<DedupOptions>;
}

/** The endpoint /charges of Express with a handler that counts, in the middle of other middleware. */
export const charges = async (handler: RequestHandler, { before = [], inside = [], after = [], options = {} }: Around = {}): Promise<Endpoint> => {
  const app = express().set('env', 'test');
  const dedup = dedupOf(options);
  let runs = 0;
  const counted: RequestHandler = (req, res, next) => {
    runs += 1;
    return handler(req, res, next);
  };
  app.all('/charges', ...before, idempotent(dedup, { name: 'charge' }), ...inside, counted);
  for (const middleware of after) app.use(middleware);
  return {
    url: `${await serve(app)}/charges`,
    dedup,
    get runs() {
      return runs;
    },
  };
};
