import type { Profile } from '../profiles/profile.js';

export type SentKey =
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly why: string }
  | { readonly kind: 'key'; readonly key: string };

/** An sf-string of RFC 9651, without parameters and not a list. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;

/** In a bare value these are traces of something else: two header lines joined, parameters, a broken sf-string. */
const AMBIGUOUS = /[,;"]/;

const invalid = (why: string): SentKey => ({ kind: 'invalid', why });

const unquote = (value: string): string | undefined => QUOTED.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1');

/**
 * Reads the key of a request. `"K"` and `K` are the same key; what cannot be one key is invalid, never ignored: the
 * client believes that it is protected.
 *
 * @param strict - takes the quoted form only, as the draft says
 */
export const readKey = ({ header, alphabet, maxLength }: Profile, headers: Headers, strict: boolean): SentKey => {
  const value = headers.get(header)?.trim();
  if (value === undefined) return { kind: 'missing' };
  const isQuoted = value.startsWith('"');
  if (strict && !isQuoted) return invalid(`Send it in double quotes: ${header}: "…".`);
  const key = isQuoted ? unquote(value) : value;
  if (key === undefined) return invalid('It begins with a double quote but is not one quoted string. Send one value, without parameters.');
  if (key === '') return invalid('It is empty.');
  if (key.length > maxLength) return invalid(`It has ${key.length} characters; at most ${maxLength} are accepted.`);
  if (isQuoted) return { kind: 'key', key };
  if (AMBIGUOUS.test(key)) return invalid('It contains a comma, semicolon or quote. Send one header line with one value, or the value in double quotes.');
  return alphabet.test(key) ? { kind: 'key', key } : invalid('It contains characters other than visible ASCII. A UUID is always accepted.');
};
