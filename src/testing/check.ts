/**
 * Asserts without a test framework, because what uses them runs under vitest, jest, node:test and in browsers alike.
 */

/** One character per byte, in pieces because the number of arguments of a call is limited. */
const spellBytes = (bytes: Uint8Array): string => {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
};

/** So much of a long value is enough to see where two differ. */
const MAX_SHOWN = 400;

const plain = (_name: string, value: unknown): unknown => {
  if (value instanceof ArrayBuffer) return { bytes: spellBytes(new Uint8Array(value)) };
  if (value === undefined) return { undefined: true };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
};

/** One spelling per value: members sorted, bytes as text, undefined visible. */
const spell = (value: unknown): string => JSON.stringify(plain('', value), plain) ?? String(value);

const shorten = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)` : text);

/** @throws Error that says what is not so */
export function ensure(condition: unknown, fact: string): asserts condition {
  if (!condition) throw new Error(`Not so: ${fact}`);
}

/** Equality by content, for plain data and bytes. @throws Error that shows both */
export const ensureEqual = (actual: unknown, expected: unknown, fact: string): void => {
  const [found, wanted] = [spell(actual), spell(expected)];
  if (found !== wanted) throw new Error(`Not so: ${fact}\n  found    ${shorten(found)}\n  expected ${shorten(wanted)}`);
};
