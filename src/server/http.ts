import type { FingerprintInput } from '../fingerprint.js';
import { frame } from '../key.js';
import { outcomeOf, replayOf, withHeaders, type StoringRules } from './answer.js';
import { readRequestBody } from './bytes.js';
import { createEngine, type Decision, type Outcome, type Run } from './engine.js';
import { isRetryable } from './errors.js';
import { readKey } from './key-header.js';
import { settingsOf, type Decided, type DedupOptions, type KeyOwner } from './options.js';
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

/** Makes the dedup layer of an HTTP server, or of a mock of one. */
export const createDedup = (options: DedupOptions): Dedup => {
  const settings = settingsOf(options);
  const { profile, store, retention, keyRetention } = settings;
  const engine = createEngine({ ...settings, recover: settings.recover });
  const storing: StoringRules = { ...settings, stores: profile.stores };

  // Observers never change what a client gets.
  const fail = (error: unknown, owner: KeyOwner): void => {
    try {
      settings.on.failed?.(error, owner);
    } catch {}
  };
  const tell = async (event: Decided): Promise<void> => {
    try {
      await settings.on.decided?.(event);
    } catch (error) {
      fail(error, event);
    }
  };
  const marked = (request: Request, response: Response, mark: Mark): Response =>
    withHeaders(response, [...marksOf(profile, mark, response.status), ...exposing(request)]);
  const refuse = (request: Request, refusal: Refusal): Response => withHeaders(refusalResponse(profile, refusal), exposing(request));
  const bypass = async (request: Request, handler: Handler, name: string, mark?: Mark): Promise<Response | undefined> => {
    const response = await handler(request, unprotected(name));
    return response && mark ? marked(request, response, mark) : response;
  };
  const recordScope = (scope: string, name: string): string => frame(settings.perEndpoint ? [scope, name] : [scope]);

  /** Runs the handler on a request of its own, which no client can abort. */
  const runHandler = async (request: Request, body: Uint8Array<ArrayBuffer>, handler: Handler, owner: KeyOwner, run: Run): Promise<Outcome<Response | undefined>> => {
    const { signal, attempt } = run;
    try {
      const own = new Request(request, { method: request.method, body, signal });
      const response = await handler(own, { ...owner, attempt, signal, effectStarted: () => run.effectStarted() });
      return response ? await outcomeOf(response, storing) : { kind: 'not-admitted', value: undefined };
    } catch (error) {
      if (profile.stores !== 'all' || isRetryable(error)) throw error;
      fail(error, owner);
      return outcomeOf(refusalResponse(profile, { code: 'handler_failed' }), storing);
    }
  };

  const respond = (request: Request, decision: Decision<Response | undefined>, refusal: Refusal | undefined): Response | undefined => {
    if (refusal) return refuse(request, refusal);
    if (decision.kind === 'replay') return marked(request, replayOf(decision.answer), 'replayed');
    if (decision.kind !== 'executed' || decision.value === undefined) return undefined;
    const { value, record } = decision;
    return record === 'stored' || record === 'unrecorded' ? marked(request, value, record) : value;
  };

  const handle = async (request: Request, handler: Handler, { name, effects = settings.effects }: HandleOptions): Promise<Response | undefined> => {
    const sent = readKey(profile, request.headers, settings.strict);
    if (!settings.methods.includes(request.method)) return bypass(request, handler, name, sent.kind === 'missing' ? undefined : 'ignored');
    if (sent.kind === 'missing' && !settings.required) return bypass(request, handler, name, 'none');
    if (sent.kind === 'missing') return refuse(request, { code: 'idempotency_key_missing' });
    if (sent.kind === 'invalid') return refuse(request, { code: 'idempotency_key_invalid', detail: sent.why });
    const scope = await settings.scope(request, { name });
    if (!scope) return refuse(request, { code: 'idempotency_scope_missing' });
    const body = await readRequestBody(request, settings.maxRequestBytes);
    if (!body) return refuse(request, { code: 'idempotency_request_too_large' });

    const owner: KeyOwner = { scope, name, key: sent.key };
    const fingerprint = await settings.fingerprint(fingerprintInput(request, body, profile.identityHeaders));
    const claim = { scope: recordScope(scope, name), key: sent.key, fingerprint, effects };
    let decision: Decision<Response | undefined>;
    try {
      decision = await engine.run(claim, run => runHandler(request, body, handler, owner, run));
    } catch (error) {
      fail(error, owner);
      return refuse(request, { code: 'handler_failed' });
    }
    if (decision.kind === 'unavailable' && settings.failOpen) return bypass(new Request(request, { method: request.method, body }), handler, name, 'unrecorded');
    const refusal = refusalOf(decision, settings.maxRetryAfter);
    await tell({ ...owner, request, decision, refusal });
    return respond(request, decision, refusal);
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
