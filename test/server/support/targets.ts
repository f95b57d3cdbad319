import { systemClock } from '../../../src/clock.js';
import { mortalStore } from '../../../src/msw/mortal-store.js';
import { adyen, azure, gocardless, ietf, paypal, stripe } from '../../../src/profiles/index.js';
import type { Profile } from '../../../src/profiles/profile.js';
import { createDedup, withCors, type Dedup, type DedupOptions, type DedupStore, type HandlerContext } from '../../../src/server/index.js';
import {
  createScenarios, PAGE_ORIGIN, scenarioGuard, TENANT_HEADER,
  type Ability, type ConformanceTarget, type EffectLedger, type Scenarios, type Server, type ServerConfig, type Subject, type Traits,
} from '../../../src/testing/conformance.js';
import type { ManualClock } from '../../support/manual-clock.js';
import { faultyStore, type FaultyStore } from './faulty-store.js';
import { fill } from './fill.js';
import { inProcess } from './serve.js';

/** What one server process reaches the records with. */
export interface Worker {
  readonly store: DedupStore;
  /** Dies with its process. */
  die(): Promise<void> | void;
}

/** What a store configuration gives to each case: an empty store on a clock that the test moves. */
export interface StoreStage {
  readonly store: DedupStore;
  readonly clock: ManualClock;
  /** ms that the store's clock may move on by itself during a case. @default 0: it is `clock` */
  readonly drift?: number;
  /** A process with connections of its own, for stores that hold a key by one. @default on `store`, cut off when it dies */
  worker?(): Promise<Worker> | Worker;
  /** Where effects are counted, for stores with transactions. @default in memory */
  readonly ledger?: EffectLedger<HandlerContext>;
  dispose?(): Promise<void>;
}

/** What a server puts between the wire and the scenario handler. */
export interface Served {
  readonly dedup: Dedup;
  readonly scenarios: Scenarios<HandlerContext>;
  /** The stable name of the endpoint that a path belongs to: what comes first on it. */
  readonly nameOf: (path: string) => string;
  /** Stands in front of all; undefined lets the request pass. */
  readonly guard: (request: Request) => Response | undefined;
  /** Guard, CORS, dedup and scenario handler as one fetch-style handler, for servers that take one. */
  readonly handle: (request: Request) => Promise<Response>;
}

/** The way into a server. */
export interface Door extends Pick<Server, 'origin' | 'fetch' | 'sendLines'> {
  close?(): Promise<void>;
}

/** Puts a server behind a door: fetch-style in process, node:http, Express, Fastify … */
export type Serve = (served: Served) => Promise<Door> | Door;

export interface DedupTargetOptions extends Omit<Traits, 'name' | 'lease' | 'retention'> {
  /** @default in process, without a socket */
  readonly serve?: Serve | undefined;
  /** Changes the options of every server. */
  readonly configure?: ((options: DedupOptions) => DedupOptions) | undefined;
  /** What this configuration cannot do, although ours can as a rule. */
  readonly without?: readonly Ability[] | undefined;
}

export const LEASE = 30_000;
export const DAY = 86_400_000;

const PROFILES: Readonly<Record<NonNullable<ServerConfig['profile']>, Profile>> = { stripe, gocardless, azure, paypal, adyen };

/** All that our own server can do over any store. */
const ABILITIES: readonly Ability[] = [
  'header lines', 'time', 'purge', 'bulk', 'resolve', 'second server', 'crash', 'cut off', 'shutdown', 'tenants', 'endpoints', 'guard', 'cors', 'announce', 'signal',
  'store down', 'store claim-lost', 'store settle-refused', 'store settle-lost', 'store settle-down',
  'config required', 'config strict', 'config wait', 'config onExpired', 'config keyRetention', 'config maxRequestBytes', 'config effects', 'config perEndpoint',
  'config failOpen', 'config profile', 'config latest', 'config recover', 'config clockSkew',
];

/** What cannot be done to a run whose end is a part of its transaction: no fault hits the one without the other. */
export const SETTLES_IN_TRANSACTION: readonly Ability[] = ['store settle-refused', 'store settle-lost', 'store settle-down'];

/** What a store lacks that holds keys by a transaction: there is no lease to lose, and no end beside the commit. */
export const WITHOUT_LEASE: readonly Ability[] = ['cut off', 'signal', 'store claim-lost', ...SETTLES_IN_TRANSACTION];

const nameOf = (path: string): string => path.split(/[/?]/)[1] ?? '';

const optionsOf = ({ store, clock }: Pick<StoreStage, 'store' | 'clock'>, { profile, latest, recover, clockSkew = 0, ...config }: ServerConfig): DedupOptions => ({
  store,
  clock: clockSkew === 0 ? clock : { ...clock, now: () => clock.now() + clockSkew },
  scope: request => request.headers.get(TENANT_HEADER) ?? undefined,
  lease: LEASE,
  retention: DAY,
  on: { failed: () => {} },
  ...config,
  profile: profile ? PROFILES[profile] : ietf,
  ...(latest && { latest: () => Response.json({ state: 'latest' }) }),
  ...(recover && { recover: async () => 'not-applied' as const }),
});

interface Connection {
  readonly store: DedupStore;
  readonly faults: FaultyStore;
  die(): Promise<void> | void;
}

const connect = async (stage: StoreStage): Promise<Connection> => {
  const worker = await stage.worker?.();
  const faults = faultyStore(worker?.store ?? stage.store);
  if (worker) return { store: faults.store, faults, die: () => worker.die() };
  const death = new AbortController();
  return { store: mortalStore(faults.store, death.signal), faults, die: () => death.abort() };
};

interface Process extends Server {
  /** Calls of the store that are on their way. */
  readonly pending: number;
  close(): Promise<void>;
}

const openProcess = async (stage: StoreStage, scenarios: Scenarios<HandlerContext>, config: ServerConfig, { serve = inProcess, configure = options => options }: DedupTargetOptions): Promise<Process> => {
  const { store, faults, die } = await connect(stage);
  const dedup = createDedup(configure(optionsOf({ store, clock: stage.clock }, config)));
  const protect = withCors(request => dedup.handle(request, scenarios.handler, { name: nameOf(new URL(request.url).pathname) }), { origins: [PAGE_ORIGIN] });
  const handle = async (request: Request): Promise<Response> => scenarioGuard(request) ?? protect(request);
  const { close, ...door } = await serve({ dedup, scenarios, nameOf, guard: scenarioGuard, handle });
  return {
    ...door,
    get pending() {
      return faults.pending;
    },
    crash: die,
    cutOff: () => faults.cutOff(true),
    reconnect: () => faults.cutOff(false),
    fail: fault => faults.fail(fault),
    async shutdown() {
      await dedup.idle();
      await die();
    },
    async close() {
      await close?.();
      await die();
    },
  };
};

const subjectOf = (stage: StoreStage, options: DedupTargetOptions): Subject => {
  const { configure = own => own } = options;
  const processes: Process[] = [];
  const scenarios = createScenarios(stage.ledger);
  const admin = createDedup(configure(optionsOf(stage, {})));
  return {
    drift: stage.drift,
    report: id => scenarios.report(id),
    release: id => scenarios.release(id),
    async open(config) {
      const opened = await openProcess(stage, scenarios, config, options);
      processes.push(opened);
      return opened;
    },
    async advance(ms) {
      await stage.clock.advance(ms);
      // What woke up (a renewal, as a rule) is done before more time passes.
      while (processes.some(({ pending }) => pending > 0)) await systemClock.sleep(1);
    },
    purge: () => admin.purge(),
    fill: count => fill(stage.store, count),
    resolve: (key, scope, verdict) => admin.resolve({ scope, name: 'charges', key }, verdict),
    async dispose() {
      await Promise.all(processes.map(each => each.close()));
      await stage.dispose?.();
    },
  };
};

/**
 * Our own server over a store, with everything that the conformance cases can ask for.
 *
 * @example
 * describeConformance({ describe, it }, dedupTarget('memory', () => {
 *   const clock = manualClock();
 *   return { store: memoryDedupStore({ clock }), clock };
 * }));
 */
export const dedupTarget = (name: string, create: () => StoreStage | Promise<StoreStage>, options: DedupTargetOptions = {}): ConformanceTarget => ({
  ...options,
  name,
  abilities: [...ABILITIES, ...(options.abilities ?? [])].filter(ability => !options.without?.includes(ability)),
  lease: LEASE,
  retention: DAY,
  atOnce: options.atOnce ?? 50,
  start: async () => subjectOf(await create(), options),
});
