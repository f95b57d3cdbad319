import { Pool, type PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { fromPg, type SqlExecutor } from '../../src/sql/index.js';
import { createPostgresDatabase } from '../support/sql-servers.js';
import { failureOf } from './facts/items.js';
import { postgresSessions } from './sessions.js';
import { POOL_SIZE } from './subject.js';
import { describeSqlDatabase } from './suite.js';

for (const prepare of [false, true]) {
  describeSqlDatabase<PoolClient>(`fromPg${prepare ? ', prepared' : ''}`, async () => {
    const place = await createPostgresDatabase();
    const pool = new Pool({ ...place, max: POOL_SIZE });
    pool.on('error', () => {});
    const sessions = postgresSessions(place);
    const subject = {
      database: fromPg(pool, { prepare }),
      dialect: 'postgres',
      through: (client: PoolClient, text: string) => client.query(text),
      lent: () => pool.totalCount - pool.idleCount,
      cut: sessions.cut,
    } as const;
    const close = async (): Promise<void> => {
      await pool.end();
      await sessions.end();
      await place.drop();
    };
    return { subject, close };
  });
}

test('fromPg prepares what has values, each text once, and a bounded number of them', async () => {
  const place = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: 1 });
  const sql = fromPg(pool, { prepare: true });
  const prepared = async (): Promise<number> => Number((await pool.query('SELECT count(*) FROM pg_prepared_statements')).rows[0].count);
  for (const value of [1, 2, 3]) expect((await sql.query('SELECT $1::int AS n', [value])).rows).toEqual([{ n: value }]);
  await sql.query('SELECT 1');
  expect(await prepared()).toBe(1);
  for (let at = 0; at < 150; at += 1) await sql.query(`SELECT $1::int AS n${at}`, [at]);
  expect(await prepared()).toBe(100);
  await pool.end();
  await place.drop();
});

test('fromPg of a client works in the transaction that the client is in', async () => {
  const place = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: 1 });
  const client = await pool.connect();
  const sql = fromPg(client);
  await sql.query('CREATE TABLE item (id text)');
  await client.query('BEGIN');
  expect(await sql.query('INSERT INTO item (id) VALUES ($1) RETURNING id', ['a'])).toEqual({ rows: [{ id: 'a' }], changed: 1 });
  await client.query('ROLLBACK');
  expect((await sql.query('SELECT id FROM item')).rows).toEqual([]);
  client.release();
  await pool.end();
  await place.drop();
});

const connectionOf = async (sql: SqlExecutor): Promise<unknown> => (await sql.query('SELECT pg_backend_pid() AS pid')).rows[0]?.['pid'];

test('C75: a connection whose rollback fails, although it is there, is not lent again', async () => {
  const place = await createPostgresDatabase();
  // The rollback has to wait for the statement, and neither is waited for longer than this.
  const pool = new Pool({ ...place, max: 1, query_timeout: 100 });
  pool.on('error', () => {});
  const database = fromPg(pool);
  let first: unknown;
  const failure = await failureOf(database.transaction(async sql => {
    first = await connectionOf(sql);
    await sql.query('SELECT pg_sleep(1)');
  }));
  expect(failure).toMatchObject({ message: 'Query read timeout' });
  expect([await connectionOf(database) === first, pool.totalCount]).toEqual([false, 1]);
  await pool.end();
  await place.drop();
});

test('C75: a connection that is lost while its work is elsewhere is why the transaction fails', async () => {
  const place = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: 1 });
  pool.on('error', () => {});
  const sessions = postgresSessions(place);
  const failure = await failureOf(fromPg(pool).transaction(async (sql, client) => {
    const lost = new Promise(resolve => client.once('end', resolve));
    await sessions.cut(sql);
    await lost;
  }));
  expect(failure).toMatchObject({ code: '57P01' });
  await pool.end();
  await sessions.end();
  await place.drop();
});
