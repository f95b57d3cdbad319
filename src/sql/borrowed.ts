import type { SqlExecutor } from './database.js';
import { lend } from './lent.js';

/** Opens a transaction, runs the work in it, and ends it: a method of a library. What it resolves with does not matter. */
export type Begin<Tx> = (work: (tx: Tx) => Promise<unknown>) => PromiseLike<unknown>;

/**
 * Work in a transaction that a library opens and ends. What the work came to is said as it is: libraries wrap it, and
 * replace it by the failure of a rollback. They may also give up while the work goes on; this waits for it, so that
 * nothing runs in a transaction that its caller believes to be over.
 */
export const runWithin = async <T, Tx>(begin: Begin<Tx>, work: (tx: Tx) => Promise<T>): Promise<T> => {
  let running: Promise<T> | undefined;
  try {
    await begin(tx => (running = work(tx)));
  } catch (error) {
    await running;
    throw error;
  }
  return running as unknown as Promise<T>;
};

/** PostgreSQL answers COMMIT with success when a failed statement has made it roll back instead, and not every library looks; after a failure this fails. */
const PROBE = 'SELECT 1';

/** A transaction that a library has opened and will commit. */
export interface LentTransaction<Tx> {
  readonly sql: SqlExecutor;
  readonly tx: Tx;
  /** Methods of `tx` that would end the transaction. */
  readonly endings: readonly string[];
}

/** Lends the transaction to the work, and rejects where a commit would only seem to succeed. */
export const workOnLoan = async <T, Tx extends object>({ sql, tx, endings }: LentTransaction<Tx>, work: (sql: SqlExecutor, tx: Tx) => Promise<T>): Promise<T> => {
  const loan = lend(tx, endings);
  try {
    const result = await work(sql, loan.view);
    await sql.query(PROBE);
    return result;
  } finally {
    loan.end();
  }
};
