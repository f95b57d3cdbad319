import { SamekeyError } from '../../../errors.js';
import type { SqlExecutor } from '../../../sql/database.js';
import { hasCode } from '../../contention.js';
import type { Table } from './table.js';

const lost = (cause: unknown): SamekeyError =>
  new SamekeyError(
    'TRANSACTION_LOST',
    'The transaction had ended before its handler did: a deadlock, whose error the handler kept to itself, rolls all of it back, and DDL commits it. What came after was committed ' +
      'statement by statement, so nobody can tell what was done, and the key is in doubt. Let such errors reject the handler, and keep DDL out of it.',
    { cause },
  );

/** Comes before statements that are not the store's own. */
export const markWhole = async ({ run, dialect: { whole } }: Table, on: SqlExecutor): Promise<void> => {
  if (whole) await run(on, whole.mark);
};

/**
 * Comes after them. Rejects when they were not all in the transaction that `on` had at the mark.
 *
 * @param doubt - notes, outside of the transaction, that nobody knows what was done
 */
export const ensureWhole = async ({ run, dialect: { whole } }: Table, on: SqlExecutor, doubt: () => Promise<unknown>): Promise<void> => {
  if (!whole) return;
  try {
    await run(on, whole.check);
  } catch (error) {
    if (!hasCode(error, whole.lost)) throw error;
    await doubt();
    throw lost(error);
  }
};
