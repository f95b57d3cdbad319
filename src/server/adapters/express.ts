import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRetryable } from '../errors.js';
import type { HandleOptions, HandlerContext } from '../handler.js';
import type { Dedup } from '../http.js';
import { checkDedup, checkHandleOptions } from '../option-kinds.js';
import { hasContext, noteContext, notePlatformRequest } from './context.js';
import { enter, type EnteredRun } from './entrance.js';
import { bodyOf } from './express-body.js';
import { captureResponse } from './node-capture.js';
import { holdRequest, type HeldRequest } from './node-hold.js';
import { putHeaders } from './node-headers.js';
import { requestFrom } from './node-request.js';
import { sendWhole } from './node-send.js';

export { idempotencyOf, platformRequestOf } from './context.js';

declare global {
  // Where @types/express keeps its requests open for middleware.
  namespace Express {
    interface Request {
      /** What the handler knows of its run; set by `idempotent`. */
      idempotency?: HandlerContext;
    }
  }
}

/**
 * What the middleware needs of a request of Express 4 or 5. It names no `body`: TypeScript would take the type of that for
 * the handlers that come after the middleware, too.
 */
export interface ExpressRequest extends IncomingMessage {
  readonly originalUrl?: string;
  idempotency?: HandlerContext;
}

type Next = (error?: unknown) => void;

/** Fits `app.use` and `app.post`. */
export type ExpressMiddleware = (request: ExpressRequest, response: ServerResponse, next: Next) => void;
export type ExpressErrorMiddleware = (error: unknown, request: ExpressRequest, response: ServerResponse, next: Next) => void;

/** Ends a run with what its handler threw, and goes on with Express's error handlers when that is recorded. */
const failures = new WeakMap<object, (error: unknown, next: Next) => void>();

interface Exchange {
  readonly request: ExpressRequest;
  readonly response: ServerResponse;
  readonly next: Next;
  readonly held: HeldRequest;
}

const run = async <Tx>(dedup: Dedup<Tx>, { request, response, next, held }: Exchange, { context, answer, fail, outcome }: EnteredRun<Tx>): Promise<void> => {
  const capture = captureResponse(held, response, { isStored: context.key !== undefined });
  let goOn: (() => void) | undefined;
  failures.set(request, (error, onward) => {
    goOn = () => onward(error);
    fail(error);
  });
  capture.answer.then(answer, fail);
  noteContext(request, dedup, context);
  request.idempotency = context;
  next();
  try {
    const result = await outcome;
    if (!goOn) return await capture.send(result);
    capture.release();
  } catch (error) {
    // Only without a key: nothing is recorded, and the handler has destroyed its response.
    capture.release();
    if (!goOn) response.destroy(error as Error);
  } finally {
    failures.delete(request);
  }
  return goOn?.();
};

const protect = async <Tx>(dedup: Dedup<Tx>, options: HandleOptions, exchange: Exchange): Promise<void> => {
  const { request, response, next, held } = exchange;
  const made = requestFrom(request, { target: request.originalUrl, body: bodyOf(request) });
  notePlatformRequest(made, request);
  const entrance = await enter(dedup, made, options);
  if (entrance.kind === 'entered') return run(dedup, exchange, entrance.run);
  held.release();
  if (entrance.kind === 'answered') return sendWhole(entrance.response, response);
  putHeaders(response, entrance.headers);
  noteContext(request, dedup, entrance.context);
  request.idempotency = entrance.context;
  return next();
};

const protectedTwice = (name: string): Error =>
  new Error(`idempotent({ name: '${name}' }) met a request that is protected already. Put it on a request once: on its route, or around all routes.`);

/**
 * Executes what comes after it once per key. Handlers write to `res` as always; the client gets the answer when it is
 * recorded, and a repeat gets the same bytes. Put it after what signs users in (a replay must be allowed, too) and after
 * compression and CORS, which belong to each client anew; before or after body parsers, where before is exact.
 *
 * Do effects before you answer: the answer is what is recorded. An answer larger than `maxAnswerBytes` or of type
 * `text/event-stream` streams, and is not replayed. What error handlers answer counts like any answer: a 400 is stored,
 * a 500 frees the key.
 *
 * @throws TypeError for what is no dedup, and for an endpoint without a name
 * @example app.post('/charges', idempotent(dedup, { name: 'charge' }), express.json(), charge)
 */
export const idempotent = <Tx>(dedup: Dedup<Tx>, options: HandleOptions): ExpressMiddleware => {
  checkDedup(dedup, 'The dedup that idempotent() was given');
  checkHandleOptions(options, 'idempotent');
  return (request, response, next) => {
    if (hasContext(request)) return next(protectedTwice(options.name));
    const held = holdRequest(request);
    protect(dedup, options, { request, response, next, held }).catch((error: unknown) => {
      held.release();
      next(error);
    });
    return undefined;
  };
};

/**
 * Tells the engine of a `RetryableError`, which says that nothing happened or all was undone: without it only the 5xx of
 * your error handler is seen. Put it before your error handlers.
 *
 * @example app.use(idempotentErrors)
 */
export const idempotentErrors: ExpressErrorMiddleware = (error, request, response, next) => {
  const failure = isRetryable(error) && !response.headersSent ? failures.get(request) : undefined;
  if (failure) failure(error, next);
  else next(error);
};
