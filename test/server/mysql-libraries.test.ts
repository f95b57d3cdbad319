import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/mysql2';
import createKnex from 'knex';
import { Kysely, MysqlDialect, sql as kyselySql } from 'kysely';
import { createPool as createCallbackPool } from 'mysql2';
import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { createDedup } from '../../src/server/index.js';
import { fromDrizzle, fromKnex, fromKysely, type SqlDatabase } from '../../src/sql/index.js';
import { bePatient } from '../support/patience.js';
import { crowd } from './support/crowd.js';
import { freshMysql, type MysqlDatabase } from './support/mysql.js';
import { openShop } from './transactions/shop.js';

bePatient();

let db: MysqlDatabase;
beforeAll(async () => {
  db = await freshMysql();
});
afterAll(() => db.drop());
beforeEach(() => db.clear());

const MOST = 10;

/** A library that brings its own transactions. */
interface Library<Tx> {
  readonly database: SqlDatabase<Tx>;
  insert(tx: Tx, label: string, attempt: number): Promise<unknown>;
  close(): Promise<void>;
}

const describeLibrary = <Tx>(name: string, open: () => Library<Tx>): void => {
  describe(`mysqlDedupStore over ${name}`, () => {
    let library: Library<Tx>;
    beforeAll(() => {
      library = open();
    });
    afterAll(() => library.close());

    it('28, C75: of 50 identical requests exactly one runs, the others hear 409 or get its answer', async () => {
      const dedup = createDedup({ store: mysqlDedupStore(library.database), scope: () => 'acme', on: { failed: () => {} } });
      const { runs, told } = await crowd([dedup], 50, async (_request, context) => {
        await library.insert(await context.transaction(), context.key ?? '', context.attempt);
        return Response.json({ charged: true }, { status: 201 });
      });
      const { executed, replayed = 0, 409: conflicts = 0, ...others } = told;
      expect({ runs, executed, rest: replayed + conflicts, others, charges: await db.count('charges') }).toEqual({ runs: 1, executed: 1, rest: 49, others: {}, charges: 1 });
    });

    it('a failed run leaves nothing behind, a refused one its answer only', async () => {
      const { send, insert, charge, charges } = openShop({ ...library, store: mysqlDedupStore(library.database), charges: () => db.count('charges'), pass: db.pass });
      expect((await send(async (_request, context) => (await insert(context), Promise.reject(new TypeError('boom'))))).status).toBe(500);
      expect((await send(async (_request, context) => (await insert(context), new Response('no', { status: 402 })))).status).toBe(402);
      expect([(await send(charge)).status, await charges()]).toEqual([402, 0]);
    });
  });
};

describeLibrary('Drizzle', () => {
  const pool = createPool({ ...db.place, connectionLimit: MOST });
  return {
    database: fromDrizzle(drizzle({ client: pool }), sql),
    insert: (tx, label, attempt) => tx.execute(sql`INSERT INTO charges (label, attempt) VALUES (${label}, ${attempt})`),
    close: () => pool.end(),
  };
});

describeLibrary('Kysely', () => {
  const kysely = new Kysely<object>({ dialect: new MysqlDialect({ pool: createCallbackPool({ ...db.place, connectionLimit: MOST }) }) });
  return {
    database: fromKysely(kysely),
    insert: (tx, label, attempt) => kyselySql`INSERT INTO charges (label, attempt) VALUES (${label}, ${attempt})`.execute(tx),
    close: () => kysely.destroy(),
  };
});

describeLibrary('Knex', () => {
  const { host, port, user, password, database } = db.place;
  const knex = createKnex({ client: 'mysql2', connection: { host, port, user, password, database }, pool: { min: 0, max: MOST } });
  return {
    database: fromKnex(knex),
    insert: async (tx, label, attempt) => tx.raw('INSERT INTO charges (label, attempt) VALUES (?, ?)', [label, attempt]),
    close: () => knex.destroy(),
  };
});
