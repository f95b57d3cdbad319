import { SamekeyError } from '../../../errors.js';
import type { SqlExecutor } from '../../../sql/database.js';
import { sql } from '../../../sql/statement.js';
import { hasCode } from '../../contention.js';
import { transactionOf, type Table } from './table.js';

const lost = (cause?: unknown): SamekeyError =>
  new SamekeyError(
    'TRANSACTION_LOST',
    'The transaction had ended before its handler did: a COMMIT or ROLLBACK of the handler ends it, a deadlock whose error the handler kept to itself rolls all of it back, and DDL may commit it. ' +
      'What came after was committed statement by statement, so nobody can tell what was done, and the key is in doubt. Leave COMMIT and ROLLBACK to samekey, let errors reject the handler, ' +
      'and keep DDL out of it.',
    cause === undefined ? {} : { cause },
  );

/** Rejects when statements were not all in the transaction in which their watch began; the repeat of a check tells the same. */
export type WholeCheck = () => Promise<void>;

/**
 * Watches a transaction while statements run in it that are not the store's own.
 *
 * @param doubt - notes, outside of the transaction, that nobody knows what was done
 */
export const watchWhole = async ({ run, dialect: { whole } }: Table, on: SqlExecutor, doubt: () => Promise<unknown> = async () => {}): Promise<WholeCheck> => {
  if (!whole) return async () => {};
  await run(on, whole.mark);
  const check = async (): Promise<void> => {
    try {
      await run(on, whole.check);
    } catch (error) {
      if (!hasCode(error, whole.lost)) throw error;
      await doubt();
      throw lost(error);
    }
  };
  let checking: Promise<void> | undefined;
  return () => (checking ??= check());
};

/** The transaction that statements on `on` run in, where the dialect can tell. */
export const transactionIn = async ({ run, dialect: { transaction } }: Table, on: SqlExecutor): Promise<string | undefined> =>
  transaction && transactionOf((await run(on, sql`SELECT ${transaction} AS transaction`)).rows[0] ?? {});

/** The same by the id of the transaction, which costs a statement: for when the row cannot be settled, or the transaction is to be rolled back. */
export const ensureSameTransaction = async (table: Table, on: SqlExecutor, began: string | undefined, doubt: () => Promise<unknown> = async () => {}): Promise<void> => {
  if (began === undefined) return;
  // One in which a statement has failed answers nothing more; nothing of it will stay.
  const now = await transactionIn(table, on).catch(() => began);
  if (now === began) return;
  await doubt();
  throw lost();
};
