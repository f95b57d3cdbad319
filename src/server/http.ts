import type { FingerprintInput } from '../fingerprint.js';
import { frame } from '../key.js';
import { outcomeOf, replayOf, withHeaders, type StoringRules } from './answer.js';
import { readRequestBody } from './bytes.js';
import { createEngine, type Decision, type Outcome, type Run } from './engine.js';
import { isRetryable } from './errors.js';
import { readKey } from './key-header.js';
import { settingsOf, type DedupOptions, type KeyOwner } from './options.js';
import type { Effects, HeaderList, Resolution, StoredAnswer } from './record.js';
import { marksOf, refusalOf, refusalResponse, type Mark, type Refusal } from './refusal.js';
import type { PurgeOptions, PurgeReport } from './store.js';

/** What a handler knows of its run. Without a key there is no protection: `key` and `scope` are undefined then. */
export interface HandlerContext {
  readonly name: string;
  readonly scope: string | undefined;
  readonly key: string | undefined;
  /** 1 for the first run under the key. */
  readonly attempt: number;
  /** Aborts when the key is lost to another run. A client that goes away does not abort it. */
  readonly signal: AbortSignal;
  /**
   * Await it before an effect that cannot be undone: a failure after it makes the key indeterminate instead of free.
   * Rejects when the effect must not begin.
   */
  effectStarted(): Promise<void>;
}

/** A fetch-style handler. Undefined means that the request is not its business; then nothing is remembered of it. */
export type Handler<T extends Response | undefined = Response | undefined> = (request: Request, context: HandlerContext) => T | Promise<T>;

export interface HandleOptions {
  /** The endpoint's stable name: `charge` for /v1/charges and /v2/charges alike. */
  readonly name: string;
  /** @default the dedup's own */
  readonly effects?: Effects | undefined;
}

/** How an operator ends doubt. `answer` is what a repeat gets; without it, that the request was executed (200). */
export type Verdict = 'not-applied' | 'applied' | { readonly answer: Response };

export interface Dedup {
  /**
   * Executes a request once per key and answers every repeat of it. The handler is not tied to the client: it runs to
   * its end when the client is gone, and its answer is stored. CORS and authorisation belong around this call, so that
   * they apply to replays too.
   *
   * It rejects only with what `scope` or reading the body throws; what a handler throws becomes a 500.
   */
  handle(request: Request, handler: Handler<Response>, options: HandleOptions): Promise<Response>;
  handle(request: Request, handler: Handler, options: HandleOptions): Promise<Response | undefined>;
  /** Ends doubt about a key. False when there is none. */
  resolve(owner: KeyOwner, verdict: Verdict): Promise<boolean>;
  /** Keeps the table small; call it now and then, from wherever you run such work. Expiry does not depend on it. */
  purge(options?: PurgeOptions): Promise<PurgeReport>;
  /** Resolves when no handler runs any more: call it before a process ends, after the server accepts no more requests. */
  idle(): Promise<void>;
}

/** Answers whose headers a page may read across origins. */
const EXPOSED = 'Idempotent-Replayed, Idempotency-Status, Retry-After, Location, Stripe-Should-Retry';

const exposing = (request: Request): HeaderList => (request.headers.has('origin') ? [['Access-Control-Expose-Headers', EXPOSED]] : []);

const never = new AbortController().signal;

const unprotected = (name: string): HandlerContext => ({ name, scope: undefined, key: undefined, attempt: 1, signal: never, effectStarted: async () => {} });

const fingerprintInput = (request: Request, body: Uint8Array<ArrayBuffer>, identityHeaders: readonly string[]): FingerprintInput => {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    target: pathname,
    query: search.slice(1),
    contentType: request.headers.get('content-type') ?? undefined,
    body,
    identity: identityHeaders.map(name => request.headers.get(name) ?? ''),
  };
};

const storedFor = async (verdict: Exclude<Verdict, 'not-applied'>): Promise<StoredAnswer> => {
  if (verdict === 'applied') return { status: 200, headers: [], body: null, omitted: 'resolved' };
  const { answer } = verdict;
  return { status: answer.status, headers: [...answer.headers], body: answer.body && new Uint8Array(await answer.arrayBuffer()) };
};

/** Runs a handler and says what its answer means for the key. */
const runHandler = async (request: Request, handler: Handler, owner: KeyOwner, run: Run, storing: StoringRules): Promise<Outcome<Response | undefined>> => {
  const { signal, attempt } = run;
  const response = await handler(request, { ...owner, attempt, signal, effectStarted: () => run.effectStarted() });
  return response ? outcomeOf(response, storing) : { kind: 'not-admitted', value: undefined };
};

/** Makes the dedup layer of an HTTP server, or of a mock of one. */
export const createDedup = (options: DedupOptions): Dedup => {
  const settings = settingsOf(options);
  const { profile, store, retention, keyRetention, on } = settings;
  const engine = createEngine({ ...settings, recover: settings.recover });
  const storing: StoringRules = { ...settings, stores: profile.stores };
  const recordScope = (scope: string, name: string): string => frame(settings.perEndpoint ? [scope, name] : [scope]);

  // Observers never change what a client gets.
  const fail = (error: unknown, call: { name: string; key: string | undefined }): void => {
    try {
      on.failed?.(error, call);
    } catch {}
  };
  const tell = async <E extends { name: string; key: string | undefined }>(listener: ((event: E) => void | Promise<void>) | undefined, event: E): Promise<void> => {
    try {
      await listener?.(event);
    } catch (error) {
      fail(error, event);
    }
  };

  const marked = (request: Request, response: Response, mark: Mark): Response =>
    withHeaders(response, [...marksOf(profile, mark, response.status), ...exposing(request)]);
  const refuse = async (request: Request, name: string, key: string | undefined, refusal: Refusal): Promise<Response> => {
    await tell(on.refused, { name, key, refusal });
    return withHeaders(refusalResponse(profile, refusal), exposing(request));
  };
  const bypass = async (request: Request, handler: Handler, name: string, mark?: Mark): Promise<Response | undefined> => {
    const response = await handler(request, unprotected(name));
    return response && mark ? marked(request, response, mark) : response;
  };

  const respond = async (request: Request, owner: KeyOwner, decision: Decision<Response | undefined>): Promise<Response | undefined> => {
    const refusal = refusalOf(decision, settings.maxRetryAfter);
    if (refusal) return refuse(request, owner.name, owner.key, refusal);
    if (decision.kind === 'replay') {
      await tell(on.replayed, { ...owner, status: decision.answer.status });
      return marked(request, replayOf(decision.answer), 'replayed');
    }
    if (decision.kind !== 'executed' || decision.value === undefined) return undefined;
    const { value, record } = decision;
    await tell(on.executed, { ...owner, status: value.status, record });
    return record === 'stored' || record === 'unrecorded' ? marked(request, value, record) : value;
  };

  /** From the key on: the body is read, the handler gets a request of its own that no client can abort. */
  const execute = async (request: Request, handler: Handler, owner: KeyOwner, effects: Effects): Promise<Response | undefined> => {
    const { name, key } = owner;
    const body = await readRequestBody(request, settings.maxRequestBytes);
    if (!body) return refuse(request, name, key, { code: 'idempotency_request_too_large' });
    const detached = (signal?: AbortSignal): Request => new Request(request, { method: request.method, body, signal: signal ?? null });
    const work = async (run: Run): Promise<Outcome<Response | undefined>> => {
      try {
        return await runHandler(detached(run.signal), handler, owner, run, storing);
      } catch (error) {
        if (profile.stores !== 'all' || isRetryable(error)) throw error;
        fail(error, owner);
        return outcomeOf(refusalResponse(profile, { code: 'handler_failed' }), storing);
      }
    };
    const fingerprint = await settings.fingerprint(fingerprintInput(request, body, profile.identityHeaders));
    let decision: Decision<Response | undefined>;
    try {
      decision = await engine.run({ scope: recordScope(owner.scope, name), key, fingerprint, effects }, work);
    } catch (error) {
      fail(error, owner);
      return refuse(request, name, key, { code: 'handler_failed' });
    }
    if (decision.kind === 'unavailable' && settings.failOpen) return bypass(detached(), handler, name, 'unrecorded');
    return respond(request, owner, decision);
  };

  const handle = async (request: Request, handler: Handler, { name, effects = settings.effects }: HandleOptions): Promise<Response | undefined> => {
    const sent = readKey(profile, request.headers, settings.strict);
    if (!settings.methods.includes(request.method)) return bypass(request, handler, name, sent.kind === 'missing' ? undefined : 'ignored');
    if (sent.kind === 'missing' && !settings.required) return bypass(request, handler, name, 'none');
    if (sent.kind === 'missing') return refuse(request, name, undefined, { code: 'idempotency_key_missing' });
    if (sent.kind === 'invalid') return refuse(request, name, undefined, { code: 'idempotency_key_invalid', detail: sent.why });
    const scope = await settings.scope(request, { name });
    if (!scope) return refuse(request, name, sent.key, { code: 'idempotency_scope_missing' });
    return execute(request, handler, { scope, name, key: sent.key }, effects);
  };

  return {
    handle: handle as Dedup['handle'],
    async resolve({ scope, name, key }, verdict) {
      const resolution: Resolution =
        verdict === 'not-applied' ? { to: 'retryable', keyRetention } : { to: 'completed', answer: await storedFor(verdict), retention, keyRetention };
      return store.resolve({ scope: recordScope(scope, name), key }, resolution);
    },
    purge: purgeOptions => store.purge(purgeOptions),
    idle: () => engine.idle(),
  };
};
