import { beforeEach, describe } from 'vitest';
import { openForAll } from '../support/open-for-all.js';
import { breakFacts } from './facts/breaks.js';
import { statementFacts } from './facts/statements.js';
import { transactionFacts } from './facts/transactions.js';
import { TABLE, type SqlSubject } from './subject.js';

/** What a subject is opened with, and how it is closed. */
export interface OpenSubject<Tx> {
  readonly subject: SqlSubject<Tx>;
  close(): Promise<void>;
}

/** Runs all facts about a `SqlDatabase` on one driver. */
export const describeSqlDatabase = <Tx>(name: string, open: () => Promise<OpenSubject<Tx>>): void => {
  describe(`${name} as a SqlDatabase`, () => {
    let opened: OpenSubject<Tx>;
    openForAll(async () => {
      opened = await open();
      for (const statement of TABLE[opened.subject.dialect]) await opened.subject.database.query(statement);
      return opened.close;
    });
    beforeEach(async () => {
      await opened.subject.database.query('DELETE FROM item');
    });
    describe('statements', () => statementFacts(() => opened.subject));
    describe('transactions', () => transactionFacts(() => opened.subject));
    describe('when something breaks', () => breakFacts(() => opened.subject));
  });
};
