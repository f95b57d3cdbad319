import ky, { type Input, type KyInstance, type Options as KyOptions, type ResponsePromise } from 'ky';
import { createCore, type Core } from './core.js';
import { OperationPendingError, StoreUnavailableError, UndeclaredOriginError, isSamekeyError, type OperationInfo } from './errors.js';
import { indexedDBKeyStore } from './keystore/indexeddb.js';
import type { KeyStore } from './keystore/keystore.js';
import { toJson } from './lossy-json.js';
import type { Operations } from './operations.js';
import { OWN_CLIENT_OPTIONS, policyOf, settingsOf, type CallOptions, type ClientOptions, type FetchInit, type OperationOptions } from './options.js';
import { infos, present, type Manner } from './present.js';
import { freeze, type FrozenRequest, type RequestTraits } from './snapshot.js';
import { assertScope, type Target } from './target.js';
import { timedOut, within } from './within.js';

/** A verb of ky, with samekey's options. */
export type Verb = <T>(url: Input, options?: CallOptions) => ResponsePromise<T>;

/** ky's instance, with operations. It can be passed wherever a `KyInstance` is asked for. */
export interface Client extends Omit<KyInstance, 'get' | 'post' | 'put' | 'delete' | 'patch' | 'head' | 'query' | 'extend'>, AsyncDisposable {
  <T>(url: Input, options?: CallOptions): ResponsePromise<T>;
  readonly get: Verb;
  readonly post: Verb;
  readonly put: Verb;
  readonly delete: Verb;
  readonly patch: Verb;
  readonly head: (url: Input, options?: CallOptions) => ResponsePromise;
  readonly query: Verb;
  /** A client with some of ky's defaults changed: same store, same operations. */
  extend(options: CallOptions | ((parent: KyOptions) => CallOptions)): Client;
  /** Drop-in for the platform's fetch: give it to an SDK. It never throws on a status. */
  fetch(input: string | URL | Request, init?: FetchInit): Promise<Response>;
  readonly operations: Operations;
  /** Ends what is under way without forgetting it, flushes, and closes the store when no other client uses it. */
  close(): Promise<void>;
}

/** One call of a verb, or of `api.fetch`. ky hands it to every fetch it makes, so that one call stays one operation. */
interface Call {
  readonly options: CallOptions;
  readonly manner: Manner;
  readonly follow: boolean;
  readonly streaming: boolean;
  /** What of the body JSON could not say. */
  unsaid?: string;
  /** Set by the first send: a forced retry of ky's is the same operation. */
  target?: Target;
  info?: () => OperationInfo | undefined;
}

const VERBS = ['get', 'post', 'put', 'delete', 'patch', 'head', 'query'] as const;

/** Names of samekey's own options of a call, which ky must not see. */
const OWN_CALL_OPTIONS: readonly (keyof OperationOptions)[] = ['operation', 'scope', 'again', 'since', 'accept', 'ifMatch'];

const omit = (options: object, names: readonly string[]): object => Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name)));

const originOf = (url: string | URL | undefined): string[] => {
  const base = globalThis.location as Location | undefined;
  return url !== undefined && URL.canParse(String(url), base?.href) ? [new URL(url, base?.href).origin] : [];
};

const declaredOrigins = ({ prefix, baseUrl, origins = [] }: ClientOptions): ReadonlySet<string> => {
  const own = (globalThis.location as Location | undefined)?.origin;
  const declared = new Set([...originOf(prefix), ...originOf(baseUrl), ...origins.flatMap(originOf), ...(own && own !== 'null' ? [own] : [])]);
  if (declared.size > 0) return declared;
  throw new UndeclaredOriginError('createClient needs to know which server it may send keys to. Pass `prefix: "https://api.shop.example"` or `origins: ["https://api.shop.example"]`.');
};

const noStore = (): Promise<never> =>
  Promise.reject(
    new StoreUnavailableError(
      'createClient needs a `keystore` here, because there is no IndexedDB. Nothing was sent. Node: fileKeyStore(directory) from "samekey/keystore/file" keeps keys through crashes and restarts; ' +
        'memoryKeyStore() from "samekey/keystore/memory" forgets them with the process.',
    ),
  );

/** IndexedDB; elsewhere nothing at all, told at the first call that needs it, so that a page's module can be loaded by a server. */
const defaultStore = (): KeyStore =>
  typeof indexedDB === 'undefined'
    ? { info: { engine: 'none', survives: 'none', shared: 'instance' }, get: noStore, commit: noStore, scan: noStore, countOpen: noStore, owner: noStore, liveness: noStore, latest: noStore, close: () => Promise.resolve() }
    : indexedDBKeyStore();

const traitsOf = (input: Input, { body, redirect }: { body?: unknown; redirect?: unknown }): RequestTraits => ({
  follow: redirect === 'follow',
  streaming: input instanceof Request || (typeof body === 'object' && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body)),
});

const assertName = (options: { operation?: unknown }, where: string): void => {
  if (typeof options.operation !== 'string') return;
  throw new TypeError(`A string \`operation\` in ${where} would make every call the same operation ("${options.operation}"). Pass it to the call, or pass a function of the request.`);
};

/** What attempts set themselves; all else that a caller gives to fetch goes along (a dispatcher, a cache mode). */
const OWN_FETCH_OPTIONS: readonly string[] = [...OWN_CALL_OPTIONS, 'method', 'headers', 'body', 'duplex', 'signal', 'redirect', 'credentials', 'mode'];

/** What ky has put into the Request, and attempts, which make their own, would lose. */
const carriedBy = ({ cache, keepalive, referrerPolicy, integrity }: Request): RequestInit => ({
  ...(cache && cache !== 'default' && { cache }),
  ...(keepalive && { keepalive }),
  ...(referrerPolicy && { referrerPolicy }),
  ...(integrity && { integrity }),
});

const orNothing = (init: RequestInit): RequestInit | undefined => (Object.keys(init).length > 0 ? init : undefined);

/** Decides for a request whether it gets a key, and performs it if so. */
const createDispatch = (core: Core, declared: ReadonlySet<string>) => {
  const { settings, calls, records } = core;

  /** As if samekey were not there. ky was told not to watch the time of a verb that looked managed. */
  const passThrough = (request: Request, call: Call, init: RequestInit | undefined): Promise<Response> => {
    if (call.manner === 'respond') return settings.fetch(request, init);
    const { timeout } = policyOf(call.options, settings.policy, false);
    const expired = timedOut(`No answer within ${timeout} ms`);
    const late = new AbortController();
    const sending = settings.fetch(new Request(request, { signal: AbortSignal.any([request.signal, late.signal]) }), init);
    return within({ clock: settings.clock, ms: timeout, expired }, sending, reason => late.abort(reason));
  };

  /** The name of a request's operation; false when it gets no key at all. */
  const nameOf = (request: Request, { options }: Call): string | false | undefined => {
    const { matcher } = settings;
    const name: unknown = options.operation !== undefined ? options.operation : typeof matcher === 'function' ? matcher(request) : matcher;
    // An id that is not there yet would make the call anonymous, and a second click a second operation.
    if (name === undefined || name === false || (typeof name === 'string' && name !== '')) return name;
    throw new TypeError(`\`operation\` is ${JSON.stringify(name)}: it takes a name (a string that is not empty), false for a call without a key, or undefined. Nothing was sent.`);
  };

  const isManaged = (request: Request, { options }: Call, name: string | false | undefined): boolean =>
    name !== false && (settings.methods.has(request.method) || (['PUT', 'DELETE', 'POST', 'PATCH'].includes(request.method) && (name !== undefined || options.ifMatch !== undefined)));

  const targetOf = async (request: Request, call: Call, name: string | undefined, freezing: Promise<FrozenRequest>): Promise<Target> => {
    const scope = assertScope(await core.scopeOf(call.options.scope), name);
    return core.target({ name, scope, givenKey: (await freezing).givenKey, origin: new URL(request.url).origin });
  };

  const assertWanted = (request: Request): void => {
    core.closing.throwIfAborted();
    request.signal.throwIfAborted();
  };

  const perform = async (request: Request, call: Call, name: string | undefined, init: RequestInit | undefined): Promise<Response> => {
    const { options, manner } = call;
    assertWanted(request);
    if (call.unsaid !== undefined) throw new TypeError(`The body has ${call.unsaid}, which JSON would turn into null. Nothing was sent. Send a number, or null where you mean it.`);
    if (request.mode === 'no-cors') throw new TypeError('mode: "no-cors" hides every answer, so the operation could never be settled. Nothing was sent. Use CORS, or `operation: false`.');
    const policy = policyOf(options, settings.policy, true);
    const { totalTimeout: ms } = policy;
    const expired = timedOut(`The scope or the body was not there within totalTimeout (${ms} ms). Nothing was sent.`);
    // Both are the caller's: they may take their time, or never come.
    const freezing = freeze(request, call, settings);
    const ready = Promise.all([call.target ?? targetOf(request, call, name, freezing), freezing]);
    const [target, frozen] = await within({ clock: settings.clock, ms, expired, signal: request.signal }, ready);
    call.target = target;
    assertWanted(request);
    const result = await calls.perform({ target, frozen, options, policy, init: orNothing({ ...carriedBy(request), ...init }), signal: request.signal });
    if (result) return present(result, manner);
    const head = await records.get(target);
    if (head) return present({ kind: 'pending', head, reason: `no answer within totalTimeout (${policy.totalTimeout} ms)` }, manner);
    throw new OperationPendingError(`The key store did not answer within totalTimeout (${policy.totalTimeout} ms). Nothing is known to be sent.`, { phase: 'unknown' });
  };

  return async (request: Request, call: Call, init: RequestInit | undefined): Promise<Response> => {
    const name = nameOf(request, call);
    const isDeclared = declared.has(new URL(request.url).origin);
    if (!isDeclared && (typeof name === 'string' || call.options.ifMatch !== undefined)) {
      throw new UndeclaredOriginError(`${request.url} is not at a declared origin (${[...declared].join(', ')}). Nothing was sent. Add its origin to \`origins\` if keys may go there.`);
    }
    if (!isDeclared || !isManaged(request, call, name)) return passThrough(request, call, init);
    try {
      const response = await perform(request, call, name || undefined, init);
      const info = infos.get(response) as OperationInfo | undefined;
      call.info = () => info;
      // By the status alone ky would throw a 303, or a 404 to a DELETE that was repeated, and would pass a refusal that came with 200.
      const ok = info?.state === 'succeeded' || (response.ok && info?.state !== 'rejected');
      if (call.manner === 'throw' && ok !== response.ok) Object.defineProperty(response, 'ok', { value: ok });
      return response;
    } catch (error) {
      if (isSamekeyError(error)) call.info = () => error.operation;
      throw error;
    }
  };
};

/** What ky gets for a managed method: it gives the API, samekey's own loop drives the attempts. */
const MANAGED_KY_OPTIONS = { timeout: false, totalTimeout: false, retry: { limit: 0, methods: [] } } as const satisfies KyOptions;

/** Only a hook can force ky to fetch again, and only for that ky has to keep a copy of the body. */
const FORCEABLE: KyOptions = { retry: { limit: 2, methods: [] } };

type Dispatch = ReturnType<typeof createDispatch>;

const wrap = (core: Core, dispatch: Dispatch, instance: KyInstance, defaults: CallOptions): Client => {
  const { settings } = core;
  const hooked = defaults.hooks?.afterResponse !== undefined;

  const invoke = (method: string | undefined, input: Input, given: CallOptions = {}): ResponsePromise => {
    const own = { ...defaults, ...given };
    const verb = (method ?? given.method ?? (input instanceof Request ? input.method : 'get')).toUpperCase();
    const named = own.operation !== undefined || own.ifMatch !== undefined;
    const managed = own.operation !== false && (settings.methods.has(verb) || (named && verb !== 'GET' && verb !== 'HEAD'));
    const options = { ...(omit(given, OWN_CALL_OPTIONS) as KyOptions), ...(method && { method }), ...(managed && MANAGED_KY_OPTIONS), ...(managed && (hooked || given.hooks?.afterResponse) && FORCEABLE) };
    if (own.ifMatch !== undefined) options.headers = { ...Object.fromEntries(new Headers(given.headers as HeadersInit)), 'if-match': own.ifMatch };
    const call: Call = { options: own, manner: 'throw', ...traitsOf(input, own) };
    if (managed && !own.stringifyJson) options.stringifyJson = data => toJson(data, what => (call.unsaid ??= what));
    const promise = instance(input, { ...options, ...(managed && { samekey: call }) } as KyOptions);
    infos.set(promise, () => call.info?.());
    return promise;
  };

  const client = ((input: Input, options?: CallOptions) => invoke(undefined, input, options)) as unknown as Client;
  const verbs = Object.fromEntries(VERBS.map(verb => [verb, (input: Input, options?: CallOptions) => invoke(verb, input, options)]));
  const extend: Client['extend'] = extension => {
    const options = typeof extension === 'function' ? extension(defaults) : extension;
    assertName(options, 'extend()');
    // ky joins hooks, so those of the parent still count.
    const hooks = options.hooks && { ...defaults.hooks, ...options.hooks };
    return wrap(core, dispatch, instance.extend(omit(options, OWN_CALL_OPTIONS)), { ...defaults, ...options, ...(hooks && { hooks }) });
  };
  const fetch: Client['fetch'] = async (input, init = {}) => {
    const request = new Request(input, omit(init, OWN_CALL_OPTIONS));
    return dispatch(request, { options: init as CallOptions, manner: 'respond', ...traitsOf(input, init) }, orNothing(omit(init, OWN_FETCH_OPTIONS)));
  };
  const { create, stop, retry } = instance;
  const rest = { create, stop, retry, extend, fetch, operations: core.operations, close: core.close, [Symbol.asyncDispose]: core.close };
  return Object.assign(client, verbs, rest);
};

/**
 * Makes a client: ky's verbs and a drop-in fetch whose POST and PATCH calls (and named PUT and DELETE calls) each get one
 * durable Idempotency-Key before their first byte leaves. It touches no storage until the first such call.
 *
 * @throws UndeclaredOriginError outside a page without `prefix`, `baseUrl` or `origins`
 * @throws TypeError for options that contradict each other
 */
export const createClient = (options: ClientOptions = {}): Client => {
  assertName(options, 'createClient()');
  if (options.keystore && typeof options.keystore.commit !== 'function') {
    throw new TypeError('`keystore` is not a key store. Call the factory: `keystore: fileKeyStore("./keys")`, `memoryKeyStore()`, `indexedDBKeyStore()`; a driver of your own goes through `batched(driver)`.');
  }
  const declared = declaredOrigins(options);
  const core = createCore(settingsOf(options), options.keystore ?? defaultStore(), [...declared][0] ?? '');
  const dispatch = createDispatch(core, declared);
  const fetch = (input: Input, init: RequestInit & { samekey?: Call } = {}): Promise<Response> => {
    const { samekey, ...rest } = init;
    const extra = orNothing(rest);
    return samekey ? dispatch(input as Request, samekey, extra) : core.settings.fetch(input as Request, extra);
  };
  const { hooks, stringifyJson } = options;
  return wrap(core, dispatch, ky.create({ ...omit(options, OWN_CLIENT_OPTIONS), fetch } as KyOptions), { ...(hooks && { hooks }), ...(stringifyJson && { stringifyJson }) });
};

/**
 * What is known of a call, a Response or an error that came of one. Undefined for what had no operation.
 *
 * @example operationOf(response)?.key
 */
export const operationOf = (subject: object): OperationInfo | undefined => {
  if (isSamekeyError(subject)) return subject.operation;
  const { response } = subject as { response?: object };
  const known = infos.get(subject) ?? (response && infos.get(response));
  return typeof known === 'function' ? known() : known;
};
