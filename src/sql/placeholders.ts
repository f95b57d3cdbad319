import type { SqlValue } from './database.js';

/** A statement taken apart at its placeholders: one text more than values. */
export interface Pieces {
  readonly texts: readonly string[];
  readonly values: readonly SqlValue[];
}

/** What placeholders cannot stand in, by its own rules of where it ends: texts, names, comments, PostgreSQL's dollar quotes. */
const OPAQUE = String.raw`'(?:[^']|'')*'|"(?:[^"]|"")*"|\`[^\`]*\`|--[^\n]*|/\*[\s\S]*?\*/|\$(\w*)\$[\s\S]*?\$\1\$`;

const NUMBERED = new RegExp(String.raw`${OPAQUE}|(?<![\w$])\$(\d+)`, 'g');
const POSITIONAL = new RegExp(String.raw`${OPAQUE}|(\?)`, 'g');

const cut = (text: string, placeholder: RegExp): { readonly texts: string[]; readonly names: string[] } => {
  const [texts, names]: [string[], string[]] = [[], []];
  let from = 0;
  for (const match of text.matchAll(placeholder)) {
    const [found, , name] = match;
    if (name === undefined) continue;
    texts.push(text.slice(from, match.index));
    names.push(name);
    from = match.index + found.length;
  }
  return { texts: [...texts, text.slice(from)], names };
};

/**
 * Takes a statement apart for libraries that have placeholders of their own.
 *
 * @throws TypeError when there is not one value for each placeholder
 */
export const piecesOf = (text: string, values: readonly SqlValue[] = []): Pieces => {
  if (values.length === 0) return { texts: [text], values };
  const numbered = cut(text, NUMBERED);
  const { texts, names } = numbered.names.length > 0 ? numbered : cut(text, POSITIONAL);
  const indexes = names.map((name, at) => (name === '?' ? at : Number(name) - 1));
  const used = new Set(indexes);
  if (used.size !== values.length || [...used].some(index => index >= values.length)) {
    throw new TypeError(`The statement has placeholders for ${used.size} values, but ${values.length} came. Write $1, $2 … for PostgreSQL, one ? for each value for MySQL.`);
  }
  return { texts, values: indexes.map(index => values[index] as SqlValue) };
};
