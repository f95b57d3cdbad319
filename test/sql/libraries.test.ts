import { sql, type SQL } from 'drizzle-orm';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import createKnex, { type Knex } from 'knex';
import { CamelCasePlugin, Kysely, MysqlDialect, PostgresDialect, sql as kyselySql, type Transaction } from 'kysely';
import { createPool as createCallbackPool } from 'mysql2';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import postgres from 'postgres';
import { describe, expect, test } from 'vitest';
import { fromDrizzle, fromKnex, fromKysely, type SqlDatabase, type SqlExecutor } from '../../src/sql/index.js';
import { createMysqlDatabase, createPostgresDatabase, type Place } from '../support/sql-servers.js';
import { addItem, countItems, failureOf } from './facts/items.js';
import { mysqlSessions, postgresSessions } from './sessions.js';
import { POOL_SIZE, TABLE, type Dialect } from './subject.js';
import { describeSqlDatabase, type OpenSubject } from './suite.js';

interface Opened<Tx> {
  readonly database: SqlDatabase<Tx>;
  through(tx: Tx, text: string): Promise<unknown>;
  end(): Promise<unknown>;
}

/** A library on a database of its own, watched from beside. */
const opening = <Tx>(dialect: Exclude<Dialect, 'sqlite'>, open: (place: Place) => Opened<Tx>) => async (): Promise<OpenSubject<Tx>> => {
  const { drop, ...place } = await (dialect === 'postgres' ? createPostgresDatabase() : createMysqlDatabase());
  const sessions = dialect === 'postgres' ? postgresSessions(place) : await mysqlSessions(place);
  const { database, through, end } = open(place);
  const close = async (): Promise<void> => {
    await end();
    await sessions.end();
    await drop();
  };
  return { subject: { database, dialect, through, lent: sessions.inTransaction, cut: sessions.cut }, close };
};

/** As the documentation of fromKysely and fromDrizzle demands. */
const openPool = (place: Place): Pool => {
  const pool = new Pool({ ...place, max: POOL_SIZE });
  pool.on('error', () => {});
  pool.on('connect', client => client.on('error', () => {}));
  return pool;
};

const throughDrizzle = async (tx: { execute(query: SQL): PromiseLike<unknown> }, text: string): Promise<unknown> => tx.execute(sql.raw(text));

describeSqlDatabase('fromDrizzle on pg', opening('postgres', place => {
  const pool = openPool(place);
  return { database: fromDrizzle(drizzlePg({ client: pool }), sql), through: throughDrizzle, end: () => pool.end() };
}));

describeSqlDatabase('fromDrizzle on mysql2', opening('mysql', place => {
  const pool = createPool({ ...place, connectionLimit: POOL_SIZE });
  return { database: fromDrizzle(drizzleMysql({ client: pool }), sql), through: throughDrizzle, end: () => pool.end() };
}));

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

const onPostgres = async (work: (place: Place) => Promise<void>): Promise<void> => {
  const { drop, ...place } = await createPostgresDatabase();
  try {
    await work(place);
  } finally {
    await drop();
  }
};

describe('the transaction that the caller has', () => {
  /** Adds a row and fails, so that the row goes with the transaction. */
  const addAndFail = async (database: SqlExecutor): Promise<never> => {
    await addItem(database, 'postgres', 'a');
    expect(await countItems(database)).toBe(1);
    throw new Error('undo');
  };

  test('of Drizzle, Kysely and Knex is what fromDrizzle, fromKysely and fromKnex of it work in', () => onPostgres(async place => {
    const pool = openPool(place);
    const [drizzle, kysely, knex] = [drizzlePg({ client: pool }), openKysely(place), connectKnex('pg', place)];
    for (const statement of TABLE.postgres) await pool.query(statement);
    await failureOf(drizzle.transaction(tx => addAndFail(fromDrizzle(tx, sql))));
    await failureOf(kysely.transaction().execute(tx => addAndFail(fromKysely(tx))));
    await failureOf(knex.transaction(tx => addAndFail(fromKnex(tx))));
    expect(await countItems(fromDrizzle(drizzle, sql))).toBe(0);
    await Promise.all([pool.end(), kysely.destroy(), knex.destroy()]);
  }));
});

describe('what libraries do to statements and rows', () => {
  test('Drizzle on postgres.js gives rows and counts as well', () => onPostgres(async place => {
    const client = postgres(place);
    const database = fromDrizzle(drizzlePostgresJs({ client }), sql);
    for (const statement of TABLE.postgres) await database.query(statement);
    expect((await database.transaction(tx => addItem(tx, 'postgres', 'a'))).changed).toBe(1);
    expect(await database.query('UPDATE item SET amount = $1 WHERE id = $2 RETURNING id', [2, 'a'])).toEqual({ rows: [{ id: 'a' }], changed: 1 });
    await client.end();
  }));

  test.each(['fromDrizzle', 'fromKnex'] as const)('%s keeps to the numbers of placeholders, in any order and more than once', name => onPostgres(async place => {
    const knex = connectKnex('pg', place);
    const pool = openPool(place);
    const database: SqlExecutor = name === 'fromKnex' ? fromKnex(knex) : fromDrizzle(drizzlePg({ client: pool }), sql);
    const { rows } = await database.query(`SELECT $2::text AS b, $1::text AS a, $2::text || '?$1' AS again, '{"a":1}'::jsonb ? 'a' AS "has ?", $$?$1$$ AS quoted -- $3 ?`, ['A', 'B']);
    expect(rows).toEqual([{ b: 'B', a: 'A', again: 'B?$1', 'has ?': true, quoted: '?$1' }]);
    await expect(database.query('SELECT $1::text', ['A', 'B'])).rejects.toThrow('placeholders for 1 values, but 2 came');
    await Promise.all([pool.end(), knex.destroy()]);
  }));

  test('fromKnex refuses a knex that changes what comes back', async () => {
    const knex = createKnex({ client: 'pg', postProcessResponse: (rows: unknown) => rows });
    expect(() => fromKnex(knex)).toThrow('without one');
    await knex.destroy();
  });
});
