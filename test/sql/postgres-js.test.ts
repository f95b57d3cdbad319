import postgres from 'postgres';
import { expect, test } from 'vitest';
import { fromPostgresJs } from '../../src/sql/index.js';
import { createPostgresDatabase } from '../support/sql-servers.js';
import { failureOf } from './facts/items.js';
import { postgresSessions } from './sessions.js';
import { POOL_SIZE } from './subject.js';
import { describeSqlDatabase } from './suite.js';

describeSqlDatabase<postgres.TransactionSql>('fromPostgresJs', async () => {
  const place = await createPostgresDatabase();
  const sql = postgres({ ...place, max: POOL_SIZE });
  const sessions = postgresSessions(place);
  const subject = {
    database: fromPostgresJs(sql),
    dialect: 'postgres',
    through: async (tx: postgres.TransactionSql, text: string) => tx.unsafe(text),
    lent: sessions.inTransaction,
    cut: sessions.cut,
  } as const;
  const close = async (): Promise<void> => {
    await sql.end();
    await sessions.end();
    await place.drop();
  };
  return { subject, close };
});

test('fromPostgresJs of the sql of a transaction works in that transaction', async () => {
  const place = await createPostgresDatabase();
  const sql = postgres({ ...place, max: 1 });
  await sql`CREATE TABLE item (id text)`;
  const reason = new Error('undo');
  expect(await failureOf(sql.begin(async tx => {
    expect(await fromPostgresJs(tx).query('INSERT INTO item (id) VALUES ($1) RETURNING id', ['a'])).toEqual({ rows: [{ id: 'a' }], changed: 1 });
    throw reason;
  }))).toBe(reason);
  expect(await sql`SELECT id FROM item`).toHaveLength(0);
  await sql.end();
  await place.drop();
});

test('C75: the handle of a transaction whose connection was lost sends nothing more, on no connection', async () => {
  const place = await createPostgresDatabase();
  const sql = postgres({ ...place, max: 1 });
  const sessions = postgresSessions(place);
  const database = fromPostgresJs(sql);
  await database.query('CREATE TABLE item (id text)');
  const failure = await failureOf(database.transaction(async (executor, tx) => {
    await sessions.cut(executor);
    // The pool has one connection, so this waits until there is another one in its place.
    await database.query('SELECT 1');
    const reason = await failureOf((async () => tx`INSERT INTO item VALUES ('through the handle')`)());
    expect(reason).toMatchObject({ code: 'CONNECTION_CLOSED' });
    expect(await failureOf(executor.query(`INSERT INTO item VALUES ('through the executor')`))).toBe(reason);
  }));
  expect(failure).toMatchObject({ code: 'CONNECTION_CLOSED' });
  expect((await database.query('SELECT id FROM item')).rows).toEqual([]);
  await sql.end();
  await sessions.end();
  await place.drop();
});
