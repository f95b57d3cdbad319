import type { SqlValue } from './database.js';

/** A statement, or a piece of one, with its values in place. Made by {@link sql}; rendered for one kind of placeholder. */
export interface Statement {
  readonly texts: readonly string[];
  readonly values: readonly SqlValue[];
}

/** `$1`, or `?`. */
export type Placeholders = 'numbered' | 'positional';

type Part = SqlValue | undefined | Statement;

const isStatement = (part: Part): part is Statement => typeof part === 'object' && part !== null && 'texts' in part;

/**
 * Writes SQL with its values where they belong: a value becomes a placeholder, never text, and a statement becomes part of
 * the text. Undefined is NULL.
 *
 * @example sql`UPDATE ${identifier('orders', '"')} SET status = ${status} WHERE ${condition}`
 */
export const sql = (strings: TemplateStringsArray, ...parts: readonly Part[]): Statement => {
  const texts = [strings[0] ?? ''];
  const values: SqlValue[] = [];
  for (const [at, part] of parts.entries()) {
    const after = strings[at + 1] ?? '';
    if (!isStatement(part)) {
      values.push(part ?? null);
      texts.push(after);
      continue;
    }
    const [first = '', ...rest] = part.texts;
    texts[texts.length - 1] += first;
    texts.push(...rest);
    values.push(...part.values);
    texts[texts.length - 1] += after;
  }
  return { texts, values };
};

/** Text that the program itself wrote. Never give it what came from outside. */
export const raw = (text: string): Statement => ({ texts: [text], values: [] });

export const join = (parts: readonly Statement[], separator = ', '): Statement =>
  parts.reduce((all, part, at) => (at === 0 ? part : sql`${all}${raw(separator)}${part}`), raw(''));

const NAME = /^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?$/;

/**
 * A quoted name of a table or column, `schema.table` too.
 *
 * @throws TypeError for anything that does not look like a name
 */
export const identifier = (name: string, quote: '"' | '`'): Statement => {
  if (!NAME.test(name)) throw new TypeError(`"${name}" is not a name for SQL. Use letters, digits and _, as in orders or shop.orders.`);
  return raw(name.split('.').map(part => quote + part + quote).join('.'));
};

export const render = ({ texts, values }: Statement, placeholders: Placeholders): { text: string; values: readonly SqlValue[] } => {
  const text = texts.reduce((all, next, at) => all + (placeholders === 'numbered' ? `$${at}` : '?') + next);
  return { text, values };
};
