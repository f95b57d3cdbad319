import { v5, v7, validate } from 'uuid';

/**
 * The only door for chance and hashing. The retry rules and the attempt loop may not import this file: a key is made
 * once, before the first send, and never inside a loop.
 */

/** Joins parts so that no two different lists give the same text: `['a', 'bc']` and `['ab', 'c']` stay apart. */
export const frame = (parts: readonly string[]): string => parts.map(part => `${part.length}:${part}`).join('');

const toNamespace = (namespace: string): string => (validate(namespace) ? namespace : v5(namespace, v5.URL));

/** A fresh, time-ordered key (UUIDv7). It works in insecure contexts too: it needs `crypto.getRandomValues` only. */
export const newKey = (): string => v7();

/** A random fraction in [0, 1), for jitter only. */
export const random = (): number => Math.random();

/**
 * The key an operation has wherever it is asked for: UUIDv5 over length-framed parts, equal in every tab, process and
 * device.
 *
 * @param namespace - a UUID, or any text (an origin, say), which then becomes one
 */
export const deriveKey = (namespace: string, parts: readonly string[]): string => v5(frame(parts), toNamespace(namespace));

/**
 * A deterministic id from the stable parts of an intent, for `PUT /orders/{id}` and for upserts: the same parts give the
 * same UUID, so repeating the create meets its own row.
 *
 * @example naturalKey('https://shop.example', 'order', cart.id)
 */
export const naturalKey = (namespace: string, ...parts: readonly (string | number | bigint)[]): string =>
  deriveKey(namespace, parts.map(String));

const hex = (bytes: ArrayBuffer): string => Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('');

interface NodeCrypto {
  readonly hash?: (algorithm: string, data: Uint8Array) => string;
}

/** Node's own hash, where this runs on Node: it takes a few microseconds and no trip through the thread pool. */
const nodeCrypto = (globalThis as { process?: { getBuiltinModule?: (name: string) => NodeCrypto } }).process?.getBuiltinModule?.('node:crypto');

/**
 * Hash of bytes, prefixed with its algorithm, so that a later change of algorithm is never mistaken for other content.
 * Without `crypto.subtle` (pages on plain http) it is the UUIDv5 of the bytes: weaker, yet enough to tell two requests
 * of one's own apart.
 */
export const digest = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> => {
  if (nodeCrypto?.hash) return `sha256:${nodeCrypto.hash('sha256', bytes)}`;
  const subtle = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  return subtle ? `sha256:${hex(await subtle.digest('SHA-256', bytes))}` : `uuid5:${v5(bytes, v5.URL)}`;
};

/** What a key says of itself, so that what was made with another one is told apart and not compared. */
const KEY_ID_TEXT = 'samekey: which secret is this?';
const KEY_ID_LENGTH = 8;

/**
 * Makes a keyed hash: HMAC-SHA-256, which nobody can try guesses against without the secret. The result names its
 * algorithm and its secret (`hmac-sha256:` and 8 hexadecimal digits that do not give it away), so that a changed secret
 * is never mistaken for other content. It rejects without `crypto.subtle` (pages on plain http).
 */
export const createHmac = (secret: Uint8Array<ArrayBuffer>): ((bytes: Uint8Array<ArrayBuffer>) => Promise<string>) => {
  const encoder = new TextEncoder();
  let ready: Promise<readonly [key: CryptoKey, id: string]> | undefined;
  const sign = async (key: CryptoKey, bytes: Uint8Array<ArrayBuffer>): Promise<string> => hex(await crypto.subtle.sign('HMAC', key, bytes));
  const prepare = async (): Promise<readonly [CryptoKey, string]> => {
    const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
    return [key, (await sign(key, encoder.encode(KEY_ID_TEXT))).slice(0, KEY_ID_LENGTH)];
  };
  return async bytes => {
    const [key, id] = await (ready ??= prepare());
    return `hmac-sha256:${id}:${await sign(key, bytes)}`;
  };
};
