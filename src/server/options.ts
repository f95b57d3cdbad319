import { systemClock, type Clock } from '../clock.js';
import { fingerprint as fingerprintV1, type FingerprintInput } from '../fingerprint.js';
import { newKey } from '../key.js';
import { ietf } from '../profiles/ietf.js';
import type { Profile } from '../profiles/profile.js';
import { storableDuration } from './durations.js';
import { checkDedupOptions, checkKeyRetention } from './option-kinds.js';
import type { Effects } from './record.js';
import type { Refusal } from './refusal.js';
import type { RecordedAs } from './run.js';
import type { DedupStore } from './store.js';
import type { Verdict } from './verdict.js';

/** Whose keys these are, and at which endpoint. */
export interface KeyOwner {
  /** What `scope` said. */
  readonly scope: string;
  /** The endpoint's stable name. */
  readonly name: string;
  readonly key: string;
}

/** A request that was neither executed nor answered from the store. */
export interface Refused {
  readonly scope: string | undefined;
  readonly name: string;
  readonly key: string | undefined;
  readonly refusal: Refusal;
}

/** For logs and metrics. Each is awaited before the response leaves; what it throws goes to `failed`. */
export interface DedupEvents {
  /** A handler has answered. `record`: what is stored of it now. */
  readonly executed?: ((event: KeyOwner & { readonly status: number; readonly record: RecordedAs }) => void | Promise<void>) | undefined;
  readonly replayed?: ((event: KeyOwner & { readonly status: number }) => void | Promise<void>) | undefined;
  /** What is not known of the request yet is undefined. With `refusal.code` `idempotency_indeterminate` this is what `resolve` wants to know. */
  readonly refused?: ((event: Refused) => void | Promise<void>) | undefined;
  /** What a handler threw (the client gets a 500), or why the store could not be asked (503). @default console.error */
  readonly failed?: ((error: unknown, call: { readonly name: string; readonly key: string | undefined }) => void) | undefined;
}

export interface DedupOptions<Tx = unknown> {
  readonly store: DedupStore<Tx>;
  /**
   * Whose key it is: the tenant, user or account that the request was authenticated for. Never the text of a
   * credential, which changes when it is renewed. Undefined or '' refuses the request: nobody shares keys with strangers.
   */
  readonly scope: (request: Request, call: { readonly name: string }) => string | undefined | Promise<string | undefined>;
  /** Whether a key counts per endpoint name. False compares a principal's keys across all endpoints. @default true */
  readonly perEndpoint?: boolean | undefined;
  /** @default ietf */
  readonly profile?: Profile | undefined;
  /** For waiting only; expiry and leases follow the store's clock. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Methods that need a key, upper case. Others pass through. @default the profile's */
  readonly methods?: readonly string[] | undefined;
  /** Whether a request without a key is refused; otherwise it runs unprotected. @default as the profile says */
  readonly required?: boolean | undefined;
  /** Accepts keys in double quotes only, as the draft says. @default false: both forms */
  readonly strict?: boolean | undefined;
  /** What a second run would do after a worker died. @default 'external' */
  readonly effects?: Effects | undefined;
  /** Whether what a refused request (an answer of 400 and more) did in its transaction is kept. @default false */
  readonly commitOnError?: boolean | undefined;
  /** ms that a run holds its key without a sign of life; renewed at a third of it. @default 30_000 */
  readonly lease?: number | undefined;
  /** ms from completion for which the answer is replayed. @default what the profile promises: 86_400_000 for `ietf` */
  readonly retention?: number | undefined;
  /** ms from completion for which the key is remembered. At least `retention`; less is refused. @default retention */
  readonly keyRetention?: number | undefined;
  /** What a key does that is older than that. @default as the profile says */
  readonly onExpired?: 'fresh' | 'refuse' | undefined;
  /** ms that a duplicate waits for the run in progress before it gets 409. @default 0 */
  readonly wait?: number | undefined;
  /** ms, the longest Retry-After of a 409. @default 5_000 */
  readonly maxRetryAfter?: number | undefined;
  /** Bytes of a request body; more is answered with 413. @default 10_485_760 */
  readonly maxRequestBytes?: number | undefined;
  /** Bytes of an answer that are stored; a larger one is given once and never executed again. @default 1_048_576 */
  readonly maxAnswerBytes?: number | undefined;
  /** Which of the headers that may be stored are. @default all */
  readonly mayStore?: ((name: string) => boolean) | undefined;
  /** Runs unprotected when the store cannot be reached and nothing is known of the key, instead of answering 503. @default false */
  readonly failOpen?: boolean | undefined;
  /** Says what two requests must have in common. Wrap the default to ignore fields. Text of another form is compared as a whole. @default fingerprint */
  readonly fingerprint?: ((input: FingerprintInput) => string | Promise<string>) | undefined;
  /**
   * In dialects whose repeats get the latest state of what the first request made (`paypal`, `stripe({ version: 2 })`):
   * says what it looks like now. `stored` is the first answer, where it was kept. Undefined: the first answer will do.
   */
  readonly latest?: ((repeat: KeyOwner & { readonly stored: Response | undefined }) => Response | undefined | Promise<Response | undefined>) | undefined;
  /**
   * Asked before a repeat is told that the outcome of the first request is unknown: what the world says about it, in the
   * words of `resolve`. Undefined: nobody knows. What it throws becomes a 503, and the doubt stays.
   */
  readonly recover?: ((doubt: KeyOwner & { readonly operationRef: string }) => Verdict | undefined | Promise<Verdict | undefined>) | undefined;
  /** Makes the ids of runs. @default newKey */
  readonly newId?: (() => string) | undefined;
  readonly on?: DedupEvents | undefined;
}

/** All options with their defaults; `recover` and `latest` stay optional. */
export type DedupSettings<Tx = unknown> = { readonly [Name in keyof Omit<DedupOptions, 'recover' | 'latest'>]-?: Exclude<DedupOptions<Tx>[Name], undefined> } & Pick<DedupOptions, 'recover' | 'latest'>;

/** Longer than most handlers, so that a renewal or two may get lost; shorter than a user's patience after a crash. */
const LEASE_MS = 30_000;
const MIB = 1_048_576;

// oxlint-disable-next-line no-console -- where nobody listens a failure must still not vanish
const reportFailure: DedupEvents['failed'] = (error, { name, key }) => console.error(`A request to "${name}" failed under key "${key ?? ''}".`, error);

/** Fills in the defaults. Throws a TypeError for what is missing, misspelt or of the wrong kind. */
export const settingsOf = <Tx>(given: DedupOptions<Tx>): DedupSettings<Tx> => {
  checkDedupOptions(given);
  const { store, scope, ...options } = given;
  const profile = options.profile ?? ietf;
  const retention = storableDuration(options.retention ?? profile.keyWindow);
  const keyRetention = storableDuration(options.keyRetention ?? retention);
  checkKeyRetention(keyRetention, retention);
  return {
    store,
    scope,
    profile,
    perEndpoint: options.perEndpoint ?? true,
    clock: options.clock ?? systemClock,
    methods: options.methods ?? profile.methods,
    required: options.required ?? profile.keyRequired,
    strict: options.strict ?? false,
    effects: options.effects ?? 'external',
    commitOnError: options.commitOnError ?? false,
    lease: storableDuration(options.lease ?? LEASE_MS),
    retention,
    keyRetention,
    onExpired: options.onExpired ?? profile.expiredKey,
    wait: storableDuration(options.wait ?? 0),
    maxRetryAfter: storableDuration(options.maxRetryAfter ?? 5_000),
    maxRequestBytes: options.maxRequestBytes ?? 10 * MIB,
    maxAnswerBytes: options.maxAnswerBytes ?? MIB,
    mayStore: options.mayStore ?? (() => true),
    failOpen: options.failOpen ?? false,
    fingerprint: options.fingerprint ?? fingerprintV1,
    recover: options.recover,
    latest: options.latest,
    newId: options.newId ?? newKey,
    on: { failed: reportFailure, ...options.on },
  };
};
