import type { Isolation } from './database.js';

/** A table, because these words become part of a statement. */
const WORDS: Record<Isolation, string> = {
  'read committed': 'READ COMMITTED',
  'repeatable read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
};

/** ` ISOLATION LEVEL …`, or nothing where the database's own level is wanted. */
export const isolationClause = (isolation: Isolation | undefined): string => {
  if (isolation === undefined) return '';
  if (!Object.hasOwn(WORDS, isolation)) throw new TypeError(`isolation is ${JSON.stringify(isolation)}; it can be ${Object.keys(WORDS).map(word => `'${word}'`).join(', ')}.`);
  return ` ISOLATION LEVEL ${WORDS[isolation]}`;
};
