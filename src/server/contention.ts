import { random } from '../key.js';

/**
 * A transaction that the database gave up in favour of another one: SQLSTATE class 40, which pg, postgres.js and mysql2 all
 * report. MariaDB has one without: a snapshot that is too old to be written on.
 */
const GIVEN_UP: ReadonlySet<unknown> = new Set(['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD']);

/** Layers above a driver wrap its errors; no chain of causes is longer in practice, and a circular one must end. */
const MAX_DEPTH = 5;

const codesOf = (error: unknown): unknown[] => {
  const { code, sqlState } = (error ?? {}) as { code?: unknown; sqlState?: unknown };
  return [code, sqlState];
};

/** Whether an error, or one that it was caused by, has one of these codes of a database. */
export const hasCode = (error: unknown, codes: ReadonlySet<unknown>): boolean => {
  let one = error;
  for (let depth = 0; depth < MAX_DEPTH && one !== undefined && one !== null; depth += 1) {
    if (codesOf(one).some(code => codes.has(code))) return true;
    one = (one as { cause?: unknown }).cause;
  }
  return false;
};

/** Deadlock or serialization failure: everything was rolled back, and the same may succeed at once. */
export const isContention = (error: unknown): boolean => hasCode(error, GIVEN_UP);

/** ms before each further try of a transaction that the database gave up, on average. Contention passes quickly or not at all. */
const RERUNS_MS: readonly number[] = [5, 10, 20, 50, 100, 200, 400];

/** What is waited before each further try, in ms. By chance, for those who met once would meet again. */
export const rerunDelays = (): readonly number[] => RERUNS_MS.map(ms => ms * (0.5 + random()));
