import { aFlag, aFunction, aName, anObject, atLeast, checkKind, checkOptions, oneOf, withMethods, type Kind, type Kinds } from '../checks.js';
import { aDedupStore } from '../database-clients.js';
import type { Profile } from '../profiles/profile.js';
import type { HandleOptions } from './handler.js';
import type { DedupEvents, DedupOptions } from './options.js';
import type { StartPurgeOptions } from './purger.js';
import type { PurgeOptions } from './store.js';

const effects = oneOf('external', 'marked', 'idempotent');
const ms = atLeast(0, 'ms');
const bytes = atLeast(0, 'bytes');

const isWord = (value: unknown): boolean => typeof value === 'string' && value !== '' && value === value.toUpperCase();

const methods: Kind = {
  expected: "a list of methods in upper case was expected, such as ['POST', 'PATCH']",
  fits: value => Array.isArray(value) && value.every(isWord),
};

/** Some profiles are functions as well. */
const isProfile = (value: unknown): boolean => {
  const { methods: words, keyWindow } = (value ?? {}) as Partial<Profile>;
  return methods.fits(words) && ms.fits(keyWindow);
};

const profile: Kind = { expected: 'a profile of samekey/profiles was expected, such as ietf or stripe', fits: isProfile };

const clock: Kind = withMethods('a clock was expected, with now() and sleep()', 'now', 'sleep');

const scope: Kind = { ...aFunction, advice: () => 'It says whose key it is, as in request => tenantOf(request).' };

const DEDUP: Kinds<DedupOptions> = {
  store: aDedupStore,
  scope,
  perEndpoint: aFlag,
  profile,
  clock,
  methods,
  required: aFlag,
  strict: aFlag,
  effects,
  commitOnError: aFlag,
  lease: atLeast(1, 'ms'),
  retention: ms,
  keyRetention: ms,
  onExpired: oneOf('fresh', 'refuse'),
  wait: ms,
  maxRetryAfter: ms,
  maxRequestBytes: bytes,
  maxAnswerBytes: bytes,
  mayStore: aFunction,
  failOpen: aFlag,
  fingerprint: aFunction,
  latest: aFunction,
  recover: aFunction,
  newId: aFunction,
  on: anObject,
};

const EVENTS: Kinds<DedupEvents> = { executed: aFunction, replayed: aFunction, refused: aFunction, failed: aFunction };

const PURGE: Kinds<PurgeOptions> = { limit: atLeast(1, 'rows'), dropIndeterminateAfter: ms };

const START_PURGE: Kinds<StartPurgeOptions> = { ...PURGE, every: atLeast(1, 'ms'), onPurged: aFunction, onError: aFunction };

const HANDLE: Kinds<HandleOptions> = { name: aName, effects };

/** @throws TypeError for what `createDedup` cannot work with */
export const checkDedupOptions = (options: unknown): void => {
  checkOptions(options, DEDUP, { of: 'createDedup', required: ['store', 'scope'] });
  const { on } = options as DedupOptions;
  if (on) checkOptions(on, EVENTS, { of: 'on of createDedup' });
};

/** @throws TypeError for an answer that would outlive its key */
export const checkKeyRetention = (keyRetention: number, retention: number): void => {
  if (keyRetention >= retention) return;
  throw new TypeError(`createDedup: keyRetention is ${keyRetention} ms, but retention ${retention} ms. No answer is replayed for a key that is forgotten: give at least ${retention}, or a shorter retention.`);
};

/** @throws TypeError for what `purge` cannot work with */
export const checkPurgeOptions = (options: unknown): void => checkOptions(options, PURGE, { of: 'purge' });

/** @throws TypeError for what `startPurge` cannot work with */
export const checkStartPurgeOptions = (options: unknown): void => checkOptions(options, START_PURGE, { of: 'startPurge' });

/** @throws TypeError for what is not made by `createDedup` */
export const checkDedup = (dedup: unknown, what: string): void => checkKind(what, dedup, withMethods('what createDedup({ store, scope }) makes was expected', 'handle', 'resolve'));

/** @throws TypeError for an endpoint without a name, among others */
export const checkHandleOptions = (options: unknown, of: string): void => checkOptions(options, HANDLE, { of, required: ['name'] });
