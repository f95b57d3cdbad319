import { InvalidKeyError, ScopeMissingError } from './errors.js';
import { deriveKey } from './key.js';
import type { HeadRef } from './keystore/keystore.js';
import type { KeySource } from './operation.js';
import type { Settings } from './options.js';

/** An operation as a call means it: whose it is, what it is called, what it sends. */
export interface Target extends HeadRef {
  readonly name: string | undefined;
  readonly keySource: KeySource;
  /** The key of a generation. */
  keyOf(generation: number): string;
}

/** Key prefixes that SDKs make anew for every call; they say nothing about the intent. */
const PER_CALL_KEYS = /^(stripe-node-retry-|stainless-node-retry-|auto_)/;

/** Whose keys and under which names: what a target is made of. */
export interface Identity {
  readonly name: string | undefined;
  readonly scope: string;
  /** The key that the caller set itself. */
  readonly givenKey: string | undefined;
  readonly origin: string;
}

/** Scope of a call, asked of the client where the call does not say. */
const WHOSE =
  'Pass `scope` to createClient or to the call. A service that acts for itself: the remote account, with the business id in the name. ' +
  'Signed-in users: () => user.id. Guests and public sites: deviceScope.';

/** @throws ScopeMissingError for a named call that nobody owns, TypeError for text that is not well-formed */
export const assertScope = (scope: string | undefined, name: string | undefined): string => {
  if (name !== undefined && !scope) throw new ScopeMissingError(`The operation "${name}" has no scope, so it could be confused with somebody else's. ${WHOSE}`);
  assertWellFormed(name ?? '', 'operation');
  assertWellFormed(scope ?? '', 'scope');
  return scope ?? '';
};

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Half a surrogate pair has no bytes: some stores and hashes refuse it, others make one name of two. */
const assertWellFormed = (text: string, what: string): void => {
  if (LONE_SURROGATE.test(text)) throw new TypeError(`The ${what} ${JSON.stringify(text)} has half a surrogate pair. Nothing was sent. Use well-formed text: ${what}.toWellFormed() makes it so, but may make one of two.`);
};

/** The id that a head has in the store. */
const idOf = (name: string | undefined, key: string, adopted: boolean): string => (name !== undefined ? `name:${name}` : adopted ? `key:${key}` : `anon:${key}`);

const derivedKeys =
  (namespace: string, client: string, scope: string, name: string) =>
  (generation: number): string =>
    deriveKey(namespace, [client, scope, name, String(generation)]);

/** @throws InvalidKeyError for a key that the profile cannot carry */
const assertKey = (key: string, { profile }: Settings): string => {
  if (key.length >= 1 && key.length <= profile.maxLength && profile.keyFormat.test(key)) return key;
  throw new InvalidKeyError(`The key ${JSON.stringify(key.slice(0, 80))} (${key.length} characters) cannot be carried by the profile "${profile.name}": 1 to ${profile.maxLength} characters of ${profile.keyFormat.source}. Nothing was sent.`);
};

/**
 * Says what operation a call means, and what its keys are. Keys are made here, once per operation, and nowhere later.
 *
 * @throws InvalidKeyError for a key that the profile cannot carry
 */
export const createTargets =
  (settings: Settings, strategy: 'derived' | 'random') =>
  ({ name, scope, givenKey, origin }: Identity): Target => {
    const { client, namespace, newKey } = settings;
    const adopted = givenKey !== undefined && !(name !== undefined && PER_CALL_KEYS.test(givenKey));
    const keySource: KeySource = adopted ? 'adopted' : name !== undefined && strategy === 'derived' ? 'derived' : 'random';
    const derived = derivedKeys(namespace ?? origin, client, scope, name ?? '');
    const made = (generation: number): string => {
      const uuid = keySource === 'derived' ? derived(generation) : newKey();
      return assertKey(settings.profile.formatKey?.(uuid) ?? uuid, settings);
    };
    const once = adopted ? assertKey(givenKey, settings) : made(1);
    const keyOf = (generation: number): string => (adopted || generation === 1 ? once : made(generation));
    return { client, scope, id: idOf(name, once, adopted), name, keySource, keyOf };
  };
