import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRetryable } from '../errors.js';
import type { HandleOptions, HandlerContext } from '../handler.js';
import type { Dedup } from '../http.js';
import { checkDedup, checkHandleOptions } from '../option-kinds.js';
import { noteContext, notePlatformRequest } from './context.js';
import { enter, type EnteredRun } from './entrance.js';
import { payloadOf, responseOf, wholePayloadOf, type Reply } from './fastify-answer.js';
import { bodyOf, keepingBytes, type Payload } from './fastify-body.js';
import { guardRoutes, markedConfig } from './fastify-guard.js';
import { captureResponse, type Capture } from './node-capture.js';
import { holdRequest, type HeldRequest } from './node-hold.js';
import { headersNow, putHeaders, resetHeaders, type HeaderSink, type HeaderValues } from './node-headers.js';
import { requestFrom } from './node-request.js';

export { idempotencyOf, platformRequestOf } from './context.js';

/** What the plugin needs of a request of Fastify. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly originalUrl: string;
}

/** For `declare module 'fastify' { interface FastifyRequest extends Idempotent {} }`; `idempotencyOf` needs no declaration. */
export interface Idempotent {
  /** What the handler knows of its run; null on routes that are not protected. */
  idempotency: HandlerContext | null;
}

export interface FastifyReply extends Reply {
  readonly raw: ServerResponse;
  code(status: number): unknown;
  header(name: string, value: unknown): unknown;
  removeHeader(name: string): unknown;
  send(payload?: unknown): unknown;
}

type Hook = (request: FastifyRequest, reply: FastifyReply, ...rest: never[]) => unknown;

/** A route as `onRoute` hooks may change it. */
export interface FastifyRoute {
  config?: object;
  handler: Hook;
  preParsing?: unknown;
  preHandler?: unknown;
  onSend?: unknown;
}

/** What the plugin needs of an instance of Fastify. Its overloads of `addHook` fit no shape but this one. */
export interface FastifyInstance {
  decorateRequest(name: string, value: null): unknown;
  addHook(name: never, hook: never): unknown;
}

export interface FastifyIdempotencyOptions {
  readonly dedup: Dedup;
}

type Done = (error?: Error | null, value?: unknown) => void;

/** How far a protected request has come. */
type Progress =
  | { readonly phase: 'running'; readonly run: EnteredRun<unknown>; readonly capture: Capture; readonly before: HeaderValues; failure?: unknown }
  /** The handler's reply is being recorded. */
  | { readonly phase: 'settling' }
  /** Not run: this is what the client gets. */
  | { readonly phase: 'answered'; readonly response: Response; readonly payload: Buffer | undefined };

const progress = new WeakMap<FastifyRequest, Progress>();

const sinkOf = (reply: FastifyReply): HeaderSink => ({
  getHeaders: () => reply.getHeaders(),
  removeHeader: name => reply.removeHeader(name),
  setHeader: (name, value) => {
    // Fastify adds cookies to those that are there.
    reply.removeHeader(name);
    reply.header(name, value);
  },
});

const put = (reply: FastifyReply, response: Response): void => {
  reply.code(response.status);
  putHeaders(sinkOf(reply), response.headers);
};

const note = <Tx>(dedup: Dedup<Tx>, request: FastifyRequest, context: HandlerContext<Tx>): void => {
  noteContext(request, dedup, context);
  (request as FastifyRequest & Idempotent).idempotency = context;
};

/** A handler may write to `reply.raw` instead of sending a reply. */
const followRaw = async ({ answer, fail, outcome }: EnteredRun<unknown>, capture: Capture, { raw }: FastifyReply): Promise<void> => {
  await capture.answer.then(answer, fail);
  try {
    await capture.send(await outcome);
  } catch (error) {
    capture.release();
    raw.destroy(error as Error);
  }
};

/** Before the handler: asks the engine. True when the handler is to run. */
const begin = async (dedup: Dedup, options: HandleOptions, held: HeldRequest, [request, reply]: [FastifyRequest, FastifyReply]): Promise<boolean> => {
  const made = requestFrom(request.raw, { target: request.originalUrl, body: bodyOf(request.raw) });
  notePlatformRequest(made, request);
  const entrance = await enter(dedup, made, options);
  if (entrance.kind === 'entered') {
    const { run } = entrance;
    const capture = captureResponse(held, reply.raw, { isStored: run.context.key !== undefined });
    progress.set(request, { phase: 'running', run, capture, before: headersNow(sinkOf(reply)) });
    void followRaw(run, capture, reply);
    note(dedup, request, run.context);
    return true;
  }
  held.release();
  if (entrance.kind === 'passed') {
    const sink = sinkOf(reply);
    // On both, for a handler that hijacks the reply.
    const setHeader: HeaderSink['setHeader'] = (name, value) => [sink.setHeader(name, value), reply.raw.setHeader(name, value)];
    putHeaders({ ...sink, setHeader }, entrance.headers);
    note(dedup, request, entrance.context);
    return true;
  }
  const { response } = entrance;
  const payload = await wholePayloadOf(response);
  progress.set(request, { phase: 'answered', response, payload });
  put(reply, response);
  reply.send(payload);
  return false;
};

/** Without a key the outcome rejects with the failure, which is Fastify's to answer. */
const recordFailure = ({ fail, outcome }: EnteredRun<unknown>, failure: unknown): Promise<unknown> => {
  fail(failure);
  return outcome.catch(() => {});
};

/** After the handler: what it sends is recorded, and then the client gets it. Returns the payload to go on with. */
const settle = async ({ run, capture, before, failure }: Progress & { phase: 'running' }, reply: FastifyReply, payload: unknown): Promise<unknown> => {
  capture.release();
  if (isRetryable(failure)) {
    await recordFailure(run, failure);
    return payload;
  }
  let answer: Response;
  try {
    answer = responseOf(reply, before, payload);
  } catch (error) {
    await recordFailure(run, error);
    throw error;
  }
  run.answer(answer);
  const response = await run.outcome;
  if (response !== answer) resetHeaders(sinkOf(reply), before);
  put(reply, response);
  const isWhole = typeof payload === 'string' || payload instanceof Uint8Array;
  return response === answer && isWhole ? payload : payloadOf(response);
};

const onSend = (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: Done): void => {
  const state = progress.get(request);
  if (!state) return done(null, payload);
  // A handler that sent twice, or sent and threw. The first reply counts; this one waits for nothing.
  if (state.phase === 'settling') return undefined;
  if (state.phase === 'answered') {
    progress.delete(request);
    // Hooks before this one have had their say when the answer was stored, so what they made of it now is dropped.
    put(reply, state.response);
    return done(null, state.payload);
  }
  progress.set(request, { phase: 'settling' });
  settle(state, reply, payload)
    .finally(() => progress.delete(request))
    .then(value => done(null, value), done);
  return undefined;
};

/** The handler, of which the engine hears what it threw: Fastify's hooks do not tell in all cases. */
const watched = (handler: Hook): Hook =>
  function (this: unknown, request, reply, ...rest) {
    const failed = (failure: unknown): void => {
      const state = progress.get(request);
      if (state?.phase === 'running') state.failure = failure;
    };
    try {
      const result = Reflect.apply(handler, this, [request, reply, ...rest]);
      if (result instanceof Promise) result.catch(failed);
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  };

const listOf = (hooks: unknown): unknown[] => (hooks === undefined ? [] : [hooks].flat());

const protectRoute = (dedup: Dedup, route: FastifyRoute): void => {
  const options = (route.config as { readonly idempotency?: HandleOptions } | undefined)?.idempotency;
  if (!options) return;
  if (!options.name) throw new Error('A route has config.idempotency without a name. Give the endpoint a stable one: { config: { idempotency: { name: "charge" } } }.');
  checkHandleOptions(options, 'config.idempotency');
  const preParsing = (request: FastifyRequest, _reply: FastifyReply, payload: Payload, done: Done): void => done(null, keepingBytes(request.raw, payload));
  const preHandler = (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    const held = holdRequest(request.raw);
    begin(dedup, options, held, [request, reply]).then(
      runs => (runs ? done() : undefined),
      (error: Error) => (held.release(), done(error)),
    );
  };
  route.config = markedConfig(route.config);
  route.handler = watched(route.handler);
  route.preParsing = [preParsing, ...listOf(route.preParsing)];
  // Last, so that hooks that let users in come before; and first, so that what encodes for one client comes after.
  route.preHandler = [...listOf(route.preHandler), preHandler];
  route.onSend = [onSend, ...listOf(route.onSend)];
};

/**
 * A Fastify plugin that executes routes with `config.idempotency` once per key. Register it before the routes, and await
 * that: a route that was added too early is refused with a 500. Handlers
 * reply as always, by `return`, `reply.send` or on `reply.raw`; the client gets the answer when it is recorded, and a
 * repeat gets the same bytes. Keys are looked up after all `preHandler` hooks, so put authorisation there or earlier. What
 * `onSend` hooks of the instance make of a payload is stored; those of routes, among them @fastify/compress, work on
 * each answer anew.
 *
 * Do effects before you answer: the answer is what is recorded. An answer larger than `maxAnswerBytes` or of type
 * `text/event-stream` streams, and is not replayed. What error handlers answer counts like any answer: a 400 is stored,
 * a 500 frees the key.
 *
 * @example
 * await app.register(idempotency, { dedup });
 * app.post('/charges', { config: { idempotency: { name: 'charge' } } }, async request => chargeCard(request.body));
 */
export const idempotency = (app: FastifyInstance, { dedup }: FastifyIdempotencyOptions, done: (error?: Error) => void): void => {
  try {
    checkDedup(dedup, 'The dedup that the plugin idempotency was given');
  } catch (error) {
    return done(error as Error);
  }
  app.decorateRequest('idempotency', null);
  guardRoutes(app);
  const onRoute = (route: FastifyRoute): void => protectRoute(dedup, route);
  app.addHook('onRoute' as never, onRoute as never);
  done();
};

// What the package fastify-plugin does: the hooks are meant for the instance that registers, not for a child of it.
Object.assign(idempotency, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'samekey' });
