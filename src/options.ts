import type { Options as KyOptions, RetryOptions } from 'ky';
import type { Reconciliation } from './drive.js';
import { after, systemClock, type Clock } from './clock.js';
import type { OperationInfo } from './errors.js';
import type { Listeners } from './events.js';
import { newKey, random } from './key.js';
import type { KeyStore } from './keystore/keystore.js';
import { ietf } from './profiles/ietf.js';
import type { Profile } from './profiles/profile.js';
import { defaultRetry, type RetryPolicy } from './retry.js';
import type { Accept, Compare, Fetch, StoredRefusals } from './send.js';

/**
 * `scope: deviceScope` makes operations belong to this browser profile or store: for guests and public sites, where
 * nobody is signed in. It is a random id that is kept in the key store.
 */
export const deviceScope: unique symbol = Symbol.for('samekey.deviceScope');

/** Whose operations they are. It is a permanent id: changing how it is computed orphans what is pending. */
export type Scope = string | typeof deviceScope | (() => string | undefined | Promise<string | undefined>);

/** What one call adds to ky's options. */
export interface OperationOptions {
  /**
   * Names the intent: `order:42:charge`. The same client, scope and name are the same operation, wherever and whenever it
   * is called. `false`: no key, no record, no resend. Without it every call is an operation of its own.
   */
  readonly operation?: string | false | undefined;
  /** Whose operation it is, for this call. @default the client's `scope` */
  readonly scope?: string | undefined;
  /** After a rejection: try once more. It does nothing in any other state, so a Pay button may always pass it. @default false */
  readonly again?: boolean | undefined;
  /** When the intent was born, ms since the epoch. With it a call whose record was lost is refused once the server may have forgotten the key. */
  readonly since?: number | undefined;
  /** Reads an answer before samekey does: see {@link ClientOptions.accept}. */
  readonly accept?: Accept | undefined;
  /** Sent as If-Match; makes PUT and DELETE managed. */
  readonly ifMatch?: string | undefined;
}

/** Options of a verb: ky's, and samekey's. */
export interface CallOptions extends KyOptions, OperationOptions {}

/** Init of `api.fetch`: the platform's, and samekey's. */
export interface FetchInit extends RequestInit, OperationOptions {}

type OwnKyOptions = 'fetch' | 'retry' | 'timeout' | 'totalTimeout';

/** Options of {@link createClient}: ky's pass through, in ky's own words. */
export interface ClientOptions extends Omit<KyOptions, OwnKyOptions> {
  /** Further origins that are protected, beside the one of `prefix` or `baseUrl` and, in a page, its own. */
  readonly origins?: readonly string[];
  /** Where operations are kept. @default IndexedDB where it exists; elsewhere it must be given */
  readonly keystore?: KeyStore;
  /** Keeps the operations of several clients on one store apart. @default 'default' */
  readonly name?: string;
  readonly scope?: Scope;
  /** Which records this process may drive. @default those of the client's own scope */
  readonly owns?: (scope: string) => boolean | Promise<boolean>;
  /** Headers that say who sends, asked for before every send and never stored. */
  readonly authorize?: (context: { readonly scope: string }) => HeadersInit | Promise<HeadersInit>;
  /** The server's dialect. @default ietf */
  readonly profile?: Profile;
  /** ms for which the server promises to remember a key. @default the profile's: 24 h */
  readonly keyWindow?: number;
  /** `derived`: named operations have the same key on every device. `random`: only on this store. @default 'derived', 'random' on a store that survives nothing */
  readonly keyStrategy?: 'derived' | 'random';
  /** Where derived keys come from, a UUID or any text; a permanent id. @default the origin of the request */
  readonly namespace?: string;
  /** ms per attempt; false for none. @default 10000 */
  readonly timeout?: number | false;
  /** ms per call. It bounds the waiting, not the life of the operation; false for none. @default 60000 */
  readonly totalTimeout?: number | false;
  /** Retries after the first send, or ky's RetryOptions. Managed methods resend what the profile allows; the others keep ky's rules. */
  readonly retry?: number | RetryOptions;
  /** Methods that get keys. PUT and DELETE join when `operation` or `ifMatch` is given. @default ['post', 'patch'] */
  readonly methods?: readonly string[];
  /** Names the operation of a request, for SDKs that cannot pass a name. */
  readonly operation?: ((request: Request) => string | false | undefined) | false;
  /** Reads an answer before samekey does: 'succeeded', 'rejected', 'stored-rejection', 'retry', 'auth', or undefined for the table of the profile. */
  readonly accept?: Accept;
  /**
   * Asked whether what the server says is there already is what the request asks for. Only of a server that compares no
   * bodies, and when no attempt of this store can have made it; without it such an operation is in doubt.
   */
  readonly compare?: Compare;
  /** Refusals that the server stores under the key: statuses, or a test. Then a refusal is final even after a lost answer. */
  readonly storedRefusals?: StoredRefusals;
  /** ms that an unexplained 409 is waited on. @default 15000 */
  readonly conflictWait?: number;
  /** Asked when an operation comes in doubt: 'applied' (or the answer itself), 'not-applied', 'unknown'. */
  readonly onInDoubt?: (operation: OperationInfo, response: Response | undefined) => Reconciliation | Promise<Reconciliation>;
  /** Longest that the server may work on a request, ms: "not applied" counts only after it. @default 600000 */
  readonly maxServerTime?: number;
  /** ms that a driver may be silent before others may take over. @default 15000 */
  readonly lease?: number;
  /** ms that answers are kept. @default 86400000 */
  readonly retention?: number;
  /** ms that the tombstones of named operations are kept at least. @default 7776000000 */
  readonly nameRetention?: number;
  /** Most operations that may be unsettled at a time. @default 10000 */
  readonly maxUnsettled?: number;
  /** Longest request body, bytes. @default 10485760 */
  readonly maxBodyBytes?: number;
  /** Longest answer body that is kept, bytes; longer ones reach their caller and are kept without body. @default 1048576 */
  readonly maxAnswerBytes?: number;
  /** Further headers that are credentials: never stored. */
  readonly secretHeaders?: readonly string[];
  /** What to do when the store fails before a send. @default 'reject': nothing is sent */
  readonly onStoreFailure?: 'reject' | 'send-unprotected';
  readonly on?: Listeners;
  readonly clock?: Partial<Clock>;
  /** A random fraction in [0, 1), for jitter. @default Math.random */
  readonly random?: () => number;
  /** Makes a fresh key. @default UUIDv7 */
  readonly newKey?: () => string;
  /** The network. @default the platform's fetch */
  readonly fetch?: (input: Request, init?: RequestInit) => Promise<Response>;
}

/** The options with their defaults, as the parts of the client use them. */
export interface Settings {
  readonly client: string;
  readonly scope: Scope | undefined;
  readonly owns: ((scope: string) => boolean | Promise<boolean>) | undefined;
  readonly authorize: ClientOptions['authorize'];
  readonly profile: Profile;
  readonly keyWindow: number;
  readonly keyStrategy: 'derived' | 'random' | undefined;
  readonly namespace: string | undefined;
  readonly policy: CallPolicy;
  readonly methods: ReadonlySet<string>;
  readonly matcher: ClientOptions['operation'];
  readonly accept: Accept | undefined;
  readonly compare: Compare | undefined;
  readonly storedRefusals: StoredRefusals | undefined;
  readonly onInDoubt: ClientOptions['onInDoubt'];
  readonly maxServerTime: number;
  readonly lease: number;
  readonly retention: number;
  readonly nameRetention: number;
  readonly maxUnsettled: number;
  readonly maxBodyBytes: number;
  readonly maxAnswerBytes: number;
  readonly secretHeaders: readonly string[];
  readonly onStoreFailure: 'reject' | 'send-unprotected';
  readonly on: Listeners;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newKey: () => string;
  readonly fetch: Fetch;
  /** Credentials among the client's own default headers; a resumed request has no others. */
  readonly headers: KyOptions['headers'];
}

/** How long and how often one call or pass tries. */
export interface CallPolicy extends RetryPolicy {
  /** ms per attempt. */
  readonly timeout: number;
  /** ms per call. */
  readonly totalTimeout: number;
}

/** Options that only unmanaged methods may have: for managed ones the profile decides what is resent. */
const REFUSED_RETRY_OPTIONS = ['statusCodes', 'afterStatusCodes', 'retryOnTimeout', 'shouldRetry'] as const;

const duration = (value: number | false | undefined, fallback: number): number => (value === false ? Infinity : (value ?? fallback));

const without = <T extends object>(value: T): T => Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T;

/**
 * The policy of a managed call.
 *
 * @throws TypeError for retry options that would decide against the profile
 */
export const policyOf = (options: Pick<CallOptions, 'retry' | 'timeout' | 'totalTimeout'>, base: CallPolicy, managed: boolean): CallPolicy => {
  const retry: RetryOptions = typeof options.retry === 'number' ? { limit: options.retry } : (options.retry ?? {});
  const refused = managed ? REFUSED_RETRY_OPTIONS.filter(name => retry[name] !== undefined) : [];
  if (refused.length > 0) {
    throw new TypeError(`retry.${refused.join(', retry.')} cannot be given for a managed method: the profile decides which answers are resent. Use \`accept\`, or \`operation: false\` for a call without a key.`);
  }
  if (options.retry === undefined && options.timeout === undefined && options.totalTimeout === undefined) return base;
  const { limit, backoffLimit, delay, jitter, maxRetryAfter } = retry;
  return {
    ...base,
    ...without({ limit, backoffLimit, delay, jitter, maxRetryAfter } as Partial<RetryPolicy>),
    timeout: duration(options.timeout, base.timeout),
    totalTimeout: duration(options.totalTimeout, base.totalTimeout),
  };
};

/** A clock of one's own may leave out what it does not change. Its wall time is not mixed with the machine's monotonic one. */
const clockOf = (given: Partial<Clock>): Clock => ({
  now: () => (given.now ? given.now() : systemClock.now()),
  sleep: (ms, signal, background) => (given.sleep ? given.sleep(ms, signal, background) : systemClock.sleep(ms, signal, background)),
  ...(given.monotonic && { monotonic: () => given.monotonic?.() ?? 0 }),
  ...(!given.sleep && { timer: (ms, run, background) => after(systemClock, ms, run, background) }),
});

const DAY_MS = 86_400_000;

/** Whether ky's retry options of a client would also speak for its managed methods. */
const retriesManaged = (retry: ClientOptions['retry'], methods: ReadonlySet<string>): boolean => {
  const named = typeof retry === 'object' ? retry.methods : undefined;
  return named === undefined || named.some(method => methods.has(method.toUpperCase()));
};

export const settingsOf = (options: ClientOptions): Settings => {
  const profile = options.profile ?? ietf;
  const methods = new Set((options.methods ?? ['post', 'patch']).map(method => method.toUpperCase()));
  const policy: CallPolicy = { ...defaultRetry, conflictWait: options.conflictWait ?? defaultRetry.conflictWait, timeout: 10_000, totalTimeout: 60_000 };
  return {
    client: options.name ?? 'default',
    scope: options.scope,
    owns: options.owns,
    authorize: options.authorize,
    profile,
    keyWindow: options.keyWindow ?? profile.keyWindow,
    keyStrategy: options.keyStrategy,
    namespace: options.namespace,
    policy: policyOf(options, policy, retriesManaged(options.retry, methods)),
    methods,
    matcher: options.operation,
    accept: options.accept,
    compare: options.compare,
    storedRefusals: options.storedRefusals,
    onInDoubt: options.onInDoubt,
    maxServerTime: options.maxServerTime ?? 600_000,
    lease: options.lease ?? 15_000,
    retention: options.retention ?? DAY_MS,
    nameRetention: options.nameRetention ?? 90 * DAY_MS,
    maxUnsettled: options.maxUnsettled ?? 10_000,
    maxBodyBytes: options.maxBodyBytes ?? 10_485_760,
    maxAnswerBytes: options.maxAnswerBytes ?? 1_048_576,
    secretHeaders: (options.secretHeaders ?? []).map(name => name.toLowerCase()),
    onStoreFailure: options.onStoreFailure ?? 'reject',
    on: options.on ?? {},
    clock: options.clock ? clockOf(options.clock) : systemClock,
    random: options.random ?? random,
    newKey: options.newKey ?? newKey,
    // Looked up at each send, so that what replaces the platform's fetch later (a mock, tracing) is used.
    fetch: options.fetch ?? ((request, init) => globalThis.fetch(request, init)),
    headers: options.headers,
  };
};

/** Names of samekey's own options, which ky must not see. */
export const OWN_CLIENT_OPTIONS: readonly (keyof ClientOptions)[] = [
  'origins', 'keystore', 'name', 'scope', 'owns', 'authorize', 'profile', 'keyWindow', 'keyStrategy', 'namespace', 'methods', 'operation', 'accept', 'compare',
  'storedRefusals', 'conflictWait', 'onInDoubt', 'maxServerTime', 'lease', 'retention', 'nameRetention', 'maxUnsettled', 'maxBodyBytes', 'maxAnswerBytes',
  'secretHeaders', 'onStoreFailure', 'on', 'clock', 'random', 'newKey',
];
