import type { StoredHead } from './keystore.js';

/** Deeper than any record of ours; a cycle must end in an error, not in an endless walk. */
const MAX_DEPTH = 32;

const nameOf = (value: unknown): string =>
  typeof value === 'object' && value !== null ? ((value.constructor as { name?: string } | undefined)?.name ?? 'object') : typeof value;

const refuse = (path: string, value: unknown): never => {
  throw new TypeError(
    `A key store cannot keep ${path}: it is a ${nameOf(value)}, and only strings, finite numbers, booleans, null, plain arrays and plain objects survive storing` +
      ' (request and response: an ArrayBuffer or null). Turn it into plain data first, headers into [name, value] pairs, say.',
  );
};

/** By the length of its prototype chain, so that plain objects of another realm are plain too. */
const isPlain = (value: object): boolean => {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

const walk = (value: unknown, path: string, depth: number): void => {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return;
  if (typeof value !== 'object' || depth > MAX_DEPTH) refuse(path, value);
  else if (Array.isArray(value)) for (let at = 0; at < value.length; at++) walk(value[at], `${path}[${at}]`, depth + 1);
  else if (isPlain(value)) for (const name in value) walk((value as Record<string, unknown>)[name], `${path}.${name}`, depth + 1);
  else refuse(path, value);
};

const isBytes = (value: unknown): boolean => value === null || Object.prototype.toString.call(value) === '[object ArrayBuffer]';

/**
 * Refuses a head that some store would lose or change without a word: structured clone turns `Headers` into `{}`, JSON
 * turns a `Map` into `{}` and NaN into null, and a view would bring its whole buffer along. The error names the field.
 *
 * @throws TypeError
 */
export const assertStorable = (head: StoredHead): void => {
  for (const name in head) {
    const value = (head as unknown as Record<string, unknown>)[name];
    if (name === 'request' || name === 'response') isBytes(value) || refuse(name, value);
    else walk(value, name, 0);
  }
};
