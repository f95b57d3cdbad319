import { expect, test, type TestContext } from 'vitest';
import { asNumber, type SqlExecutor } from '../../../src/sql/index.js';
import { POOL_SIZE, type AnySubject } from '../subject.js';
import { addItem, countItems, failureOf, gate } from './items.js';

/** Whether every connection works and is in no transaction: all of the pool are asked at the same time. */
const allAreWell = async ({ database, cut }: AnySubject): Promise<boolean> => {
  const [size, everyone] = [cut ? POOL_SIZE : 1, gate()];
  let here = 0;
  const answers = await Promise.all(Array.from({ length: size }, () => database.transaction(async sql => {
    const answer = asNumber((await sql.query('SELECT 1 AS one')).rows[0]?.['one']);
    if ((here += 1) === size) everyone.open();
    await everyone.passed;
    return answer;
  })));
  return answers.every(answer => answer === 1);
};

const cutOf = ({ cut }: AnySubject, context: TestContext): ((sql: SqlExecutor) => Promise<void>) => cut ?? context.skip('there is no connection that could break');

export const breakFacts = (subject: () => AnySubject): void => {
  test('C75: a connection that is cut in a transaction rejects it, and the pool is well afterwards', async context => {
    const { database, dialect, lent } = subject();
    const cut = cutOf(subject(), context);
    const failure = await failureOf(database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      await cut(sql);
      await addItem(sql, dialect, 'b');
    }));
    expect(failure).toBeInstanceOf(Error);
    expect([await lent(), await allAreWell(subject()), await countItems(database)]).toEqual([0, true, 0]);
  });

  test('C75: a connection that is cut while its work is elsewhere fails the commit, and nothing is committed', async context => {
    const { database, dialect, lent } = subject();
    const cut = cutOf(subject(), context);
    const failure = await failureOf(database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      await cut(sql);
    }));
    expect(failure).toBeInstanceOf(Error);
    expect([await lent(), await allAreWell(subject()), await countItems(database)]).toEqual([0, true, 0]);
  });

  test('C75: a rollback that fails, because the connection is gone, does not hide why the work failed', async context => {
    const { database, dialect, lent } = subject();
    const cut = cutOf(subject(), context);
    const reason = new Error('no stock');
    const failure = await failureOf(database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      await cut(sql);
      throw reason;
    }));
    expect(failure).toBe(reason);
    expect([await lent(), await allAreWell(subject()), await countItems(database)]).toEqual([0, true, 0]);
  });

  test('C75: connections that are cut under load are lost, and no others', async context => {
    const { database, dialect, lent } = subject();
    const cut = cutOf(subject(), context);
    const outcomes = await Promise.allSettled(Array.from({ length: 24 }, (_, at) => database.transaction(async sql => {
      await addItem(sql, dialect, `${at}`);
      if (at % 3 === 0) await cut(sql);
    })));
    expect(outcomes.map(({ status }, at) => [at, status]).filter(([at, status]) => (status === 'rejected') !== (Number(at) % 3 === 0))).toEqual([]);
    expect([await lent(), await allAreWell(subject()), await countItems(database)]).toEqual([0, true, 16]);
  });

  test('a commit that the database refuses rejects with its error, and nothing is committed', async context => {
    const { database, dialect, lent } = subject();
    if (dialect === 'mysql') context.skip('MySQL checks nothing as late as at the commit');
    const failure = await failureOf(database.transaction(sql => sql.query(`INSERT INTO item (id, parent) VALUES ('a', 'nobody')`)));
    expect(failure).toMatchObject(dialect === 'postgres' ? { code: '23503' } : { errcode: 787 });
    expect([await lent(), await allAreWell(subject()), await countItems(database)]).toEqual([0, true, 0]);
  });
};
