import type { Isolation } from './database.js';

/** A table, because these words become part of a statement. */
const WORDS: Record<Isolation, string> = {
  'read committed': 'READ COMMITTED',
  'repeatable read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
};

/** @throws TypeError when there is no such level */
export const checkIsolation = (isolation: Isolation | undefined): void => {
  if (isolation === undefined || Object.hasOwn(WORDS, isolation)) return;
  throw new TypeError(`isolation is ${JSON.stringify(isolation)}; it can be ${Object.keys(WORDS).map(word => `'${word}'`).join(', ')}.`);
};

/** ` ISOLATION LEVEL …`, or nothing where the database's own level is wanted. */
export const isolationClause = (isolation: Isolation | undefined): string => {
  checkIsolation(isolation);
  return isolation === undefined ? '' : ` ISOLATION LEVEL ${WORDS[isolation]}`;
};
