import { parseFixdate } from '../imf-fixdate.js';
import type { Profile } from '../profiles/profile.js';
import { keyMadeAt } from './key-age.js';

export type SentKey =
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly why: string }
  /** `madeAt`: ms since 1970 on the client's clock, where the request says it. */
  | { readonly kind: 'key'; readonly key: string; readonly madeAt: number | undefined };

/** An sf-string of RFC 9651, without parameters and not a list. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;

/** In a bare value these are traces of something else: two header lines joined, parameters, a broken sf-string. */
const AMBIGUOUS = /[,;"]/;

/** Only quotes make these part of a key, whatever else its form is. */
const ONLY_QUOTED = /[ ,;"\\]/g;

export const MISSING: SentKey = { kind: 'missing' };

export const invalid = (why: string): SentKey => ({ kind: 'invalid', why });

const unquote = (value: string): string | undefined => QUOTED.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1');

/** A key by itself, however it was carried. `form`: the key without what only quotes allow. */
export const checkKey = (key: string, { keyFormat, maxLength }: Profile, form: string = key): SentKey => {
  if (key === '') return invalid('It is empty.');
  if (key.length > maxLength) return invalid(`It has ${key.length} characters; at most ${maxLength} are accepted.`);
  return keyFormat.test(form) ? { kind: 'key', key, madeAt: keyMadeAt(key) } : invalid(`It does not look like ${keyFormat.source}. A UUID is always accepted.`);
};

const fromHeader = (value: string, profile: Profile, strict: boolean): SentKey => {
  const isQuoted = value.startsWith('"');
  if (strict && !isQuoted) return invalid(`Send it in double quotes: ${profile.header}: "…".`);
  const key = isQuoted ? unquote(value) : value;
  if (key === undefined) return invalid('It begins with a double quote but is not one quoted string. Send one value, without parameters.');
  if (isQuoted) return checkKey(key, profile, key.replace(ONLY_QUOTED, '_'));
  if (AMBIGUOUS.test(key)) return invalid('It contains a comma, semicolon or quote. Send one header line with one value, or the value in double quotes.');
  return checkKey(key, profile);
};

/** The second header of a dialect that says when the first attempt was: one without the other is a mistake. */
const withFirstSent = (sent: SentKey, name: string, headers: Headers): SentKey => {
  const value = headers.get(name);
  if (sent.kind === 'missing') return value === null ? sent : invalid(`${name} is there, and the key is not. Send both, or neither.`);
  if (sent.kind === 'invalid') return sent;
  const madeAt = value === null ? undefined : parseFixdate(value);
  if (madeAt !== undefined) return { ...sent, madeAt };
  return invalid(`${name} is ${value === null ? 'missing' : 'no date'}. Send the time of the first attempt, as in "Tue, 03 Feb 2026 04:05:06 GMT".`);
};

/**
 * Reads the key of a request from its headers. `"K"` and `K` are the same key; what cannot be one key is invalid, never
 * ignored: the client believes that it is protected.
 *
 * @param strict - takes the quoted form only, as the draft says
 */
export const readKey = (profile: Profile, headers: Headers, strict: boolean): SentKey => {
  const { header, firstSentHeader } = profile;
  const value = header === undefined ? undefined : headers.get(header)?.trim();
  const sent = value === undefined ? MISSING : fromHeader(value, profile, strict);
  return firstSentHeader === undefined ? sent : withFirstSent(sent, firstSentHeader, headers);
};
