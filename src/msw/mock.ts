import { HttpResponse, type DefaultBodyType, type HttpResponseResolver, type PathParams } from 'msw';
import { systemClock, type Clock } from '../clock.js';
import { ietf } from '../profiles/ietf.js';
import { createDedup, type DedupOptions, type Effects, type Verdict } from '../server/index.js';
import { readSentKey } from '../server/sent-key.js';
import type { OwnedDedupStore, PurgeOptions, PurgeReport } from '../server/store.js';
import { memoryDedupStore } from '../server/stores/memory.js';
import { exposedBy, forbiddenBy, type MockCors } from './cors.js';
import { deliverTwice, type DuplicateDelivery } from './delivery.js';
import { createExchange, type Info } from './exchange.js';
import { createFaults, type Fault, type FaultKind, type FaultOptions } from './faults.js';
import { countExecutions, createLedger, type LedgerEntry, type LedgerEvent } from './ledger.js';
import { mark } from './mark.js';
import { ownResolver, type IdempotentResolver, type OwnedResolver } from './resolver.js';
import { seededRandom } from './seeded-random.js';

export interface IdempotencyMockOptions extends Omit<DedupOptions, 'store' | 'scope' | 'on'> {
  /**
   * Where the mock remembers. `indexedDBDedupStore()` outlives a reload of the page, ledger and execution counts included.
   * @default memoryDedupStore({ clock })
   */
  readonly store?: OwnedDedupStore | undefined;
  /** For waiting, and for the default store. A store of your own needs the same clock. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Chooses what faults with a `chance` hit: the same seed, the same requests. @default 1 */
  readonly seed?: number | undefined;
  /** Whose keys a request uses. @default one constant principal: tokens are renewed, users in a test rarely change */
  readonly principal?: ((request: Request) => string | undefined | Promise<string | undefined>) | undefined;
  /**
   * Delivers every request twice, as runtimes and proxies do that send again by themselves; the client hears the second
   * answer. Each delivery takes a fault of its own.
   *
   * @default undefined: once
   */
  readonly duplicateDelivery?: DuplicateDelivery | undefined;
  /**
   * Lets through only what the browser would, on these permissions, between a page and a server of another origin. MSW
   * answers before a browser asks for permission, so a mock hides what forgotten CORS headers do. It shows what a client
   * makes of it; whether your server sends them only a real request can tell.
   *
   * @default undefined: everything passes
   */
  readonly cors?: MockCors | undefined;
}

export interface IdempotentOptions {
  /** The endpoint's name, for keys, ledger and faults: a resolver cannot see its route. */
  readonly name: string;
  /**
   * What may happen when a run dies with its page. `external`: a repeat is told that nobody knows (409). `idempotent`: it
   * runs again, as suits a resolver whose effects are gone with the page's memory.
   * @default 'external'
   */
  readonly effects?: Effects | undefined;
}

/** Kinds that need no settings may be planted without. */
type OptionsArgument<Kind extends FaultKind> = object extends FaultOptions<Kind> ? [options?: FaultOptions<Kind>] : [options: FaultOptions<Kind>];

/** A server's half of the contract, behind MSW. */
export interface IdempotencyMock {
  /**
   * Makes a resolver run once per key: repeats get the stored answer, all else what dedup engines say. A resolver that
   * returns undefined or `passthrough()` has executed nothing.
   *
   * @example http.post('https://api.test/charges', mock.idempotent(() => HttpResponse.json(charge(), { status: 201 }), { name: 'charge' }))
   */
  idempotent<Params extends PathParams<keyof Params> = PathParams, RequestBody extends DefaultBodyType = DefaultBodyType, ResponseBody extends DefaultBodyType = undefined>(
    resolver: IdempotentResolver<Params, RequestBody, ResponseBody>,
    options: IdempotentOptions,
  ): HttpResponseResolver<Params, RequestBody, ResponseBody>;
  /**
   * Plants a fault into the next requests of an endpoint; each request takes one. Kept in memory only.
   *
   * @throws TypeError for a name that no endpoint has, while others are there
   */
  fault<Kind extends FaultKind>(name: string, kind: Kind, ...options: OptionsArgument<Kind>): Fault;
  /** Everything that happened, in order, as far as it is known here; see {@link IdempotencyMock.load}. */
  readonly ledger: readonly LedgerEntry[];
  /** How often the endpoint's resolver (or any, without a name) has really run. */
  executions(name?: string): number;
  /** Ends doubt about a key, at every endpoint that has it. False where there is none. */
  resolve(key: string, verdict: Verdict): Promise<boolean>;
  /** Reads the ledger of a store that outlives the page, and what other tabs did meanwhile. The first request does it too. */
  load(): Promise<void>;
  purge(options?: PurgeOptions): Promise<PurgeReport>;
  /** Forgets keys, ledger, faults and the progress of generators. Await it between tests. */
  reset(): Promise<void>;
}

const PRINCIPAL = 'mock';

/**
 * Makes the mock of a server that keeps its side of the contract, in Node and in browsers. What MSW cannot show needs a
 * real server:
 * - an answer cut off in the middle: Node delivers a broken stream as a clean, shorter body;
 * - the client's abort in a browser (`crash-on-abort` works in Node only);
 * - requests made before `worker.start()` is done, after `stop()`, or by a page that its worker lost: they reach the
 *   network. Give {@link onlyMocked} to the client: it waits, and refuses every answer without the mock's mark;
 * - cookies of replays, preflights (but see `cors`), and whatever else belongs to a connection.
 *
 * `server.resetHandlers()` does not touch it: await {@link IdempotencyMock.reset} between tests.
 */
export const createIdempotencyMock = ({ store: given, seed = 1, principal = () => PRINCIPAL, duplicateDelivery, cors, ...options }: IdempotencyMockOptions = {}): IdempotencyMock => {
  const clock = options.clock ?? systemClock;
  const store = given ?? memoryDedupStore({ clock });
  const ledger = createLedger(store.journal, clock);
  const names = new Set<string>();
  const faults = createFaults(seededRandom(seed), names);
  const resolvers = new Set<OwnedResolver>();
  const settings: DedupOptions & { clock: Clock } = { ...options, clock, store, scope: principal };
  const admin = createDedup(settings);
  let loaded: Promise<void> | undefined;
  // Grows with reset, so that a run from before it writes nothing into the ledger after it.
  let era = 0;

  const loggerOf = async ({ requestId, request }: Info, name: string): Promise<(event: LedgerEvent) => Promise<void>> => {
    const begunIn = era;
    const sent = await readSentKey({ profile: options.profile ?? ietf, strict: false, maxRequestBytes: Infinity }, request);
    const common = { name, request: requestId, key: sent.kind === 'key' ? sent.key : undefined };
    return async event => (begunIn === era ? ledger.append({ ...event, ...common }) : undefined);
  };

  const deliver = async (info: Info, resolver: OwnedResolver, { name, effects }: IdempotentOptions): Promise<Response | undefined> => {
    const log = await loggerOf(info, name);
    await log({ kind: 'request', method: info.request.method, url: info.request.url });
    const fault = faults.take(name);
    const exchange = createExchange({ info, resolver, name, effects, settings, log });
    if (fault) await log({ kind: 'fault', fault: fault.kind });
    const response = await (fault ? fault.play(exchange) : exchange.answer());
    return response && mark(response, name);
  };

  const serve = async (info: Info, resolver: OwnedResolver, endpoint: IdempotentOptions): Promise<Response | undefined> => {
    await (loaded ??= ledger.load());
    const forbidden = cors ? forbiddenBy(cors, info.request) : [];
    if (forbidden.length > 0) {
      await (await loggerOf(info, endpoint.name))({ kind: 'blocked', headers: forbidden });
      return HttpResponse.error();
    }
    const once = (): Promise<Response | undefined> => deliver(info, resolver, endpoint);
    const response = await (duplicateDelivery ? deliverTwice(duplicateDelivery, once) : once());
    return response && cors ? exposedBy(cors, info.request, response) : response;
  };

  return {
    idempotent(resolver, endpoint) {
      const owned = ownResolver(resolver);
      resolvers.add(owned);
      names.add(endpoint.name);
      // What the engine answers (a replay, a refusal) is described by no body type of the resolver.
      return ((info: Info) => serve(info, owned, endpoint)) as never;
    },
    fault: (name, kind, ...[faultOptions]) => faults.plant(name, kind, faultOptions ?? ({} as never)),
    get ledger() {
      return ledger.entries;
    },
    executions: name => countExecutions(ledger.entries, name),
    async resolve(key, verdict) {
      await (loaded ??= ledger.load());
      const owners = new Map(ledger.entries.flatMap(entry => (entry.kind === 'claim' && entry.key === key ? [[`${entry.scope} ${entry.name}`, entry]] : [])));
      const resolved = await Promise.all(Array.from(owners.values(), ({ scope, name }) => admin.resolve({ scope, name, key }, verdict)));
      return resolved.includes(true);
    },
    load: () => (loaded = ledger.load()),
    purge: purgeOptions => store.purge(purgeOptions),
    async reset() {
      era += 1;
      faults.clear();
      ledger.clear();
      for (const resolver of resolvers) resolver.reset();
      await store.clear();
    },
  };
};
