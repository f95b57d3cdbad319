import { expect } from 'vitest';
import { asNumber, type SqlExecutor, type SqlResult } from '../../../src/sql/index.js';
import { marks, type Dialect } from '../subject.js';

export const addItem = (sql: SqlExecutor, dialect: Dialect, id: string, amount = 1): Promise<SqlResult> =>
  sql.query(`INSERT INTO item (id, amount) VALUES (${marks(dialect, 2).join(', ')})`, [id, amount]);

export const countItems = async (sql: SqlExecutor): Promise<number> => asNumber((await sql.query('SELECT count(*) AS n FROM item')).rows[0]?.['n']);

/** What a promise rejects with. */
export const failureOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => 'it did not fail', (error: unknown) => error);

/** Adds a row and fails, so that the row goes with the transaction. */
export const addAndFail = async (database: SqlExecutor): Promise<never> => {
  await addItem(database, 'postgres', 'a');
  expect(await countItems(database)).toBe(1);
  throw new Error('undo');
};

/** A promise and what settles it. */
export const gate = (): { readonly passed: Promise<void>; readonly open: () => void } => {
  let open = (): void => {};
  const passed = new Promise<void>(resolve => (open = resolve));
  return { passed, open };
};
