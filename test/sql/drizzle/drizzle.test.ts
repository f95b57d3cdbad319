import { sql, type SQL } from 'drizzle-orm';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { createPool } from 'mysql2/promise';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { fromDrizzle } from '../../../src/sql/index.js';
import { addAndFail, addItem, countItems, failureOf } from '../facts/items.js';
import { placeholdersFact } from '../facts/placeholders.js';
import { onPostgres, openPool, opening } from '../openings.js';
import { POOL_SIZE, TABLE } from '../subject.js';
import { describeSqlDatabase } from '../suite.js';

const throughDrizzle = async (tx: { execute(query: SQL): PromiseLike<unknown> }, text: string): Promise<unknown> => tx.execute(sql.raw(text));

describeSqlDatabase('fromDrizzle on pg', opening('postgres', place => {
  const pool = openPool(place);
  return { database: fromDrizzle(drizzlePg({ client: pool }), sql), through: throughDrizzle, end: () => pool.end() };
}));

describeSqlDatabase('fromDrizzle on mysql2', opening('mysql', place => {
  const pool = createPool({ ...place, connectionLimit: POOL_SIZE });
  return { database: fromDrizzle(drizzleMysql({ client: pool }), sql), through: throughDrizzle, end: () => pool.end() };
}));

test('the transaction of Drizzle that the caller has is what fromDrizzle of it works in', () => onPostgres(async place => {
  const pool = openPool(place);
  const drizzle = drizzlePg({ client: pool });
  for (const statement of TABLE.postgres) await pool.query(statement);
  await failureOf(drizzle.transaction(tx => addAndFail(fromDrizzle(tx, sql))));
  expect(await countItems(fromDrizzle(drizzle, sql))).toBe(0);
  await pool.end();
}));

test('Drizzle on postgres.js gives rows and counts as well', () => onPostgres(async place => {
  const client = postgres(place);
  const database = fromDrizzle(drizzlePostgresJs({ client }), sql);
  for (const statement of TABLE.postgres) await database.query(statement);
  expect((await database.transaction(tx => addItem(tx, 'postgres', 'a'))).changed).toBe(1);
  expect(await database.query('UPDATE item SET amount = $1 WHERE id = $2 RETURNING id', [2, 'a'])).toEqual({ rows: [{ id: 'a' }], changed: 1 });
  await client.end();
}));

test('fromDrizzle keeps to the numbers of placeholders, in any order and more than once', () => onPostgres(async place => {
  const pool = openPool(place);
  await placeholdersFact(fromDrizzle(drizzlePg({ client: pool }), sql));
  await pool.end();
}));
