import { Pool, type PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { fromPg } from '../../src/sql/index.js';
import { createPostgresDatabase } from '../support/sql-servers.js';
import { postgresSessions } from './sessions.js';
import { POOL_SIZE } from './subject.js';
import { describeSqlDatabase } from './suite.js';

describeSqlDatabase<PoolClient>('fromPg', async () => {
  const place = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: POOL_SIZE });
  pool.on('error', () => {});
  const sessions = postgresSessions(place);
  const subject = {
    database: fromPg(pool),
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
