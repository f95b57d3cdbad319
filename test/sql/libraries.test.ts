import createKnex, { type Knex } from 'knex';
import { CamelCasePlugin, Kysely, MysqlDialect, PostgresDialect, sql as kyselySql, type Transaction } from 'kysely';
import { createPool as createCallbackPool } from 'mysql2';
import { expect, test } from 'vitest';
import { fromKnex, fromKysely } from '../../src/sql/index.js';
import type { Place } from '../support/sql-servers.js';
import { addAndFail, countItems, failureOf } from './facts/items.js';
import { placeholdersFact } from './facts/placeholders.js';
import { onPostgres, opening, openPool, type Opened } from './openings.js';
import { POOL_SIZE, TABLE } from './subject.js';
import { describeSqlDatabase } from './suite.js';

const openKysely = (place: Place): Kysely<object> => new Kysely<object>({ dialect: new PostgresDialect({ pool: openPool(place) }), plugins: [new CamelCasePlugin()] });

const throughKysely = (tx: Transaction<object>, text: string): Promise<unknown> => kyselySql.raw(text).execute(tx);

describeSqlDatabase('fromKysely on pg', opening('postgres', place => {
  const db = openKysely(place);
  return { database: fromKysely(db), through: throughKysely, end: () => db.destroy() };
}));

describeSqlDatabase('fromKysely on mysql2', opening('mysql', place => {
  const db = new Kysely<object>({ dialect: new MysqlDialect({ pool: createCallbackPool({ ...place, connectionLimit: POOL_SIZE }) }) });
  return { database: fromKysely(db), through: throughKysely, end: () => db.destroy() };
}));

const quiet = { warn: () => {}, error: () => {} };

const connectKnex = (client: 'pg' | 'mysql2', { host, port, user, password, database }: Place): Knex =>
  createKnex({ client, connection: { host, port, user, password, database }, pool: { min: 0, max: POOL_SIZE }, log: quiet });

const openKnex = (client: 'pg' | 'mysql2') => (place: Place): Opened<Knex.Transaction> => {
  const knex = connectKnex(client, place);
  return { database: fromKnex(knex), through: async (tx, text) => tx.raw(text), end: () => knex.destroy() };
};

describeSqlDatabase('fromKnex on pg', opening('postgres', openKnex('pg')));
describeSqlDatabase('fromKnex on mysql2', opening('mysql', openKnex('mysql2')));

test('the transaction of Kysely or Knex that the caller has is what fromKysely and fromKnex of it work in', () => onPostgres(async place => {
  const [kysely, knex] = [openKysely(place), connectKnex('pg', place)];
  for (const statement of TABLE.postgres) await fromKnex(knex).query(statement);
  await failureOf(kysely.transaction().execute(tx => addAndFail(fromKysely(tx))));
  await failureOf(knex.transaction(tx => addAndFail(fromKnex(tx))));
  expect(await countItems(fromKnex(knex))).toBe(0);
  await Promise.all([kysely.destroy(), knex.destroy()]);
}));

test('fromKnex keeps to the numbers of placeholders, in any order and more than once', () => onPostgres(async place => {
  const knex = connectKnex('pg', place);
  await placeholdersFact(fromKnex(knex));
  await knex.destroy();
}));

test('fromKnex refuses a knex that changes what comes back', async () => {
  const knex = createKnex({ client: 'pg', postProcessResponse: (rows: unknown) => rows });
  expect(() => fromKnex(knex)).toThrow('without one');
  await knex.destroy();
});
