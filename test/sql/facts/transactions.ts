import { expect, test } from 'vitest';
import { asNumber, type Isolation, type SqlDatabase } from '../../../src/sql/index.js';
import { marks, POOL_SIZE, type AnySubject, type SqlSubject } from '../subject.js';
import { addItem, countItems, failureOf, gate } from './items.js';

/** More than any pool under test holds. */
const CROWD = 5 * POOL_SIZE;

/** The amount as it is read before and after somebody else commits 2. */
const readTwice = async (database: SqlDatabase, isolation: Isolation): Promise<readonly number[]> => {
  const read = 'SELECT amount FROM item';
  return database.transaction(async sql => {
    const before = asNumber((await sql.query(read)).rows[0]?.['amount']);
    await database.query('UPDATE item SET amount = 2');
    return [before, asNumber((await sql.query(read)).rows[0]?.['amount'])];
  }, { isolation });
};

const commitFacts = <Tx>(subject: () => SqlSubject<Tx>): void => {
  test('is committed when its work resolves, which is what it resolves with', async () => {
    const { database, dialect } = subject();
    const result = await database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      return (await addItem(sql, dialect, 'b')).changed;
    });
    expect([result, await countItems(database)]).toEqual([1, 2]);
  });

  test('is rolled back when its work rejects, with the error of the work', async () => {
    const { database, dialect } = subject();
    const reason = Object.assign(new Error('no stock'), { code: 'OUT_OF_STOCK' });
    const failure = await failureOf(database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      throw reason;
    }));
    expect(failure).toBe(reason);
    expect(await countItems(database)).toBe(0);
  });

  test('is rolled back when its work throws before it has made a promise', async () => {
    const reason = new Error('at once');
    expect(await failureOf(subject().database.transaction(() => { throw reason; }))).toBe(reason);
    expect(await subject().lent()).toBe(0);
  });

  test('includes what goes through the handle of the driver', async () => {
    const { database, dialect, through } = subject();
    await failureOf(database.transaction(async (sql, tx) => {
      await through(tx, `INSERT INTO item (id) VALUES ('a')`);
      expect(await countItems(sql)).toBe(1);
      throw new Error('undo');
    }));
    expect(await countItems(database)).toBe(0);
    await database.transaction(async (sql, tx) => {
      await addItem(sql, dialect, 'a');
      await through(tx, `UPDATE item SET amount = 7`);
    });
    expect(asNumber((await database.query('SELECT amount FROM item')).rows[0]?.['amount'])).toBe(7);
  });

  test('never looks committed when it is not: a failure that the work swallowed', async () => {
    const { database, dialect } = subject();
    const swallowed = database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      await failureOf(addItem(sql, dialect, 'a'));
    });
    const isCommitted = await swallowed.then(() => true, () => false);
    // PostgreSQL gives a transaction up with its first failed statement, the others undo the statement.
    expect([isCommitted, await countItems(database)]).toEqual(dialect === 'postgres' ? [false, 0] : [true, 1]);
  });

  test('can undo a part of itself with a savepoint', async () => {
    const { database, dialect } = subject();
    await database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      await sql.query('SAVEPOINT before_b');
      await addItem(sql, dialect, 'b');
      await sql.query('ROLLBACK TO SAVEPOINT before_b');
      await addItem(sql, dialect, 'c');
    });
    expect((await database.query('SELECT id FROM item ORDER BY id')).rows.map(({ id }) => id)).toEqual(['a', 'c']);
  });
};

const isolationFacts = (subject: () => AnySubject): void => {
  test('shows others nothing before it is committed', async () => {
    const { database, dialect } = subject();
    const [added, asked] = [gate(), gate()];
    const work = failureOf(database.transaction(async sql => {
      await addItem(sql, dialect, 'a');
      added.open();
      await asked.passed;
      throw new Error('undo');
    }));
    await added.passed;
    const seen = countItems(database);
    asked.open();
    await work;
    expect(await seen).toBe(0);
  });

  test('reads twice what others commit in between, as its isolation says', async context => {
    const { database, dialect } = subject();
    if (dialect === 'sqlite') context.skip('in SQLite one writes at a time, so every transaction is serializable');
    const levels: Partial<Record<Isolation, readonly number[]>> = {};
    for (const isolation of ['read committed', 'repeatable read'] as const) {
      await database.query('DELETE FROM item');
      await addItem(database, dialect, 'a', 1);
      levels[isolation] = await readTwice(database, isolation);
    }
    expect(levels).toEqual({ 'read committed': [1, 2], 'repeatable read': [1, 1] });
    await database.query('UPDATE item SET amount = 1');
    expect(await database.transaction(async sql => asNumber((await sql.query('SELECT amount FROM item')).rows[0]?.['amount']), { isolation: 'serializable' })).toBe(1);
  });

  test('an isolation that does not exist is refused, and nothing runs', async () => {
    const { database, lent } = subject();
    const unknown = 'snapshot; DROP TABLE item' as Isolation;
    expect(await failureOf(database.transaction(async () => 'ran', { isolation: unknown }))).toMatchObject({ message: expect.stringContaining('serializable') });
    expect(await lent()).toBe(0);
  });

  test('many at once, more than there are connections, lose no update', async () => {
    const { database, dialect } = subject();
    await addItem(database, dialect, 'a', 0);
    const lock = dialect === 'sqlite' ? '' : ' FOR UPDATE';
    await Promise.all(Array.from({ length: CROWD }, () => database.transaction(async sql => {
      const amount = asNumber((await sql.query(`SELECT amount FROM item${lock}`)).rows[0]?.['amount']);
      await sql.query(`UPDATE item SET amount = ${marks(dialect, 1)[0]}`, [amount + 1]);
    })));
    expect(asNumber((await database.query('SELECT amount FROM item')).rows[0]?.['amount'])).toBe(CROWD);
  });
};

export const transactionFacts = <Tx>(subject: () => SqlSubject<Tx>): void => {
  commitFacts(subject);
  isolationFacts(subject as () => AnySubject);

  test('gives its connection back, committed or not', async () => {
    const { database, dialect, lent } = subject();
    for (let round = 0; round < CROWD; round += 1) {
      await database.transaction(sql => addItem(sql, dialect, `${round}`));
      await failureOf(database.transaction(async sql => {
        await addItem(sql, dialect, `${round}`);
      }));
      expect(await lent()).toBe(0);
    }
    expect(await countItems(database)).toBe(CROWD);
  });
};
