import { checkKind, oneOf, type Kind } from '../checks.js';
import type { Isolation } from './database.js';

/** A table, because these words become part of a statement. */
const WORDS: Record<Isolation, string> = {
  'read committed': 'READ COMMITTED',
  'repeatable read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
};

/** A level of isolation. */
export const anIsolation: Kind = oneOf(...Object.keys(WORDS));

/** @throws TypeError when there is no such level */
export const checkIsolation = (isolation: Isolation | undefined): void => {
  if (isolation !== undefined) checkKind('isolation', isolation, anIsolation);
};

/** ` ISOLATION LEVEL …`, or nothing where the database's own level is wanted. */
export const isolationClause = (isolation: Isolation | undefined): string => {
  checkIsolation(isolation);
  return isolation === undefined ? '' : ` ISOLATION LEVEL ${WORDS[isolation]}`;
};
