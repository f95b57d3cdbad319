import { frame } from '../../../key.js';
import type { RecordRef } from '../../record.js';

/** How the Redis keys of the records are called. */
export interface Names {
  nameOf(ref: RecordRef): string;
  /** For SCAN: matches the records, and nothing under a longer prefix. */
  readonly pattern: string;
}

// What stands in braces is a hash tag, by which callers could heap their keys on one node of a cluster; and UTF-8 has no halves of
// surrogate pairs, so that two texts with such halves would become one.
const ESCAPED = /[%{}]|\p{Surrogate}/gu;

const escaped = (text: string): string => text.replace(ESCAPED, character => `%${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** @throws TypeError when keys under the prefix could be mistaken for others */
export const namesUnder = (prefix: string): Names => {
  if (!/\D$/.test(prefix)) {
    throw new TypeError(`The prefix is "${prefix}", but one that is not empty and does not end in a digit was expected: a length follows it. Take "samekey:", say.`);
  }
  return {
    nameOf: ({ scope, key }) => `${prefix}${escaped(frame([scope, key]))}`,
    pattern: `${prefix.replace(/[*?[\]\\]/g, '\\$&')}[0-9]*`,
  };
};
