import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { fromMysql2, type SqlExecutor } from '../../src/sql/index.js';
import { openOrSkip } from '../support/open-for-all.js';
import { createMysqlDatabase } from '../support/sql-servers.js';
import { failureOf, gate } from './facts/items.js';
import { mysqlSessions } from './sessions.js';
import { POOL_SIZE } from './subject.js';
import { describeSqlDatabase } from './suite.js';

/** Its events do not tell of connections that end while they are lent. */
const lentBy = (pool: Pool): number => {
  const { _allConnections: all, _freeConnections: free } = pool.pool as unknown as Record<string, { readonly length: number }>;
  return (all?.length ?? 0) - (free?.length ?? 0);
};

describeSqlDatabase<PoolConnection>('fromMysql2', async () => {
  const { drop, ...place } = await createMysqlDatabase();
  const pool = createPool({ ...place, connectionLimit: POOL_SIZE });
  const sessions = await mysqlSessions(place);
  const subject = {
    database: fromMysql2(pool),
    dialect: 'mysql',
    through: (connection: PoolConnection, text: string) => connection.query(text),
    lent: () => lentBy(pool),
    cut: sessions.cut,
  } as const;
  const close = async (): Promise<void> => {
    await pool.end();
    await sessions.end();
    await drop();
  };
  return { subject, close };
});

const openTable = async (): Promise<{ readonly pool: Pool; readonly close: () => Promise<void> }> => {
  const { drop, ...place } = await createMysqlDatabase();
  const pool = createPool({ ...place, connectionLimit: POOL_SIZE });
  await pool.query('CREATE TABLE item (id varchar(9) PRIMARY KEY, amount int)');
  const close = async (): Promise<void> => {
    await pool.end();
    await drop();
  };
  return { pool, close };
};

test('fromMysql2 of a connection works in the transaction that the connection is in', async context => {
  const { pool, close } = await openOrSkip(context, openTable());
  const connection = await pool.getConnection();
  const sql = fromMysql2(connection);
  await connection.beginTransaction();
  expect(await sql.query('INSERT INTO item (id) VALUES (?)', ['a'])).toEqual({ rows: [], changed: 1 });
  await connection.rollback();
  expect((await sql.query('SELECT id FROM item')).rows).toEqual([]);
  connection.release();
  await close();
});

test('a transaction that a deadlock rolled back is not said to be committed, although its work swallowed that', async context => {
  const { pool, close } = await openOrSkip(context, openTable());
  const database = fromMysql2(pool);
  await database.query(`INSERT INTO item VALUES ('a', 0), ('b', 0)`);
  const held = { a: gate(), b: gate() };
  const raise = (sql: SqlExecutor, id: string) => sql.query('UPDATE item SET amount = amount + 1 WHERE id = ?', [id]);
  const meeting = (first: 'a' | 'b', second: 'a' | 'b') => database.transaction(async sql => {
    await raise(sql, first);
    held[first].open();
    await held[second].passed;
    await failureOf(raise(sql, second));
  });
  const outcomes = await Promise.allSettled([meeting('a', 'b'), meeting('b', 'a')]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { sqlState: '25000' } });
  expect((await database.query('SELECT amount FROM item')).rows).toEqual([{ amount: 1 }, { amount: 1 }]);
  expect(lentBy(pool)).toBe(0);
  await close();
});

test('a transaction that DDL has committed half way is not said to have been one', async context => {
  const { pool, close } = await openOrSkip(context, openTable());
  expect(await failureOf(fromMysql2(pool).transaction(sql => sql.query('CREATE TABLE another (id int)')))).toMatchObject({ sqlState: '25000' });
  await close();
});

test('C75: a connection whose rollback fails is destroyed, not given back', async () => {
  const ended: string[] = [];
  const reason = new Error('no stock');
  const connection = {
    execute: () => Promise.reject(new Error('not asked')),
    query: async ({ sql }: { readonly sql: string }): Promise<[object]> => (sql === 'ROLLBACK' ? Promise.reject(new Error('rollback failed')) : [{ affectedRows: 0, serverStatus: 3 }]),
    release: () => void ended.push('released'),
    destroy: () => void ended.push('destroyed'),
  };
  const database = fromMysql2({ ...connection, getConnection: async () => connection });
  expect(await failureOf(database.transaction(() => Promise.reject(reason)))).toBe(reason);
  expect(ended).toEqual(['destroyed']);
});
