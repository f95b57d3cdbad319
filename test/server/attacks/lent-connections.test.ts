import knex, { type Knex } from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import postgresJsClient from 'postgres';
import { expect, it } from 'vitest';
import { createDedup, type DedupStore } from '../../../src/server/index.js';
import { mysqlDedupStore } from '../../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { fromKnex } from '../../../src/sql/knex.js';
import { fromKysely } from '../../../src/sql/kysely.js';
import { fromMysql2 } from '../../../src/sql/mysql2.js';
import { fromPg } from '../../../src/sql/pg.js';
import { fromPostgresJs } from '../../../src/sql/postgres-js.js';
import { openForAll } from '../../support/open-for-all.js';
import { bePatient } from '../../support/patience.js';
import { requestOf } from '../support/endpoint.js';
import { freshMysql, type MysqlDatabase } from '../support/mysql.js';
import { freshPostgres, type PostgresDatabase } from '../support/postgres.js';

bePatient();

let postgres: PostgresDatabase;
let mysql: MysqlDatabase;
openForAll(async () => {
  mysql = await freshMysql();
  postgres = await freshPostgres();
  return () => Promise.all([postgres.drop(), mysql.drop()]);
});

interface Driver {
  readonly store: DedupStore;
  /** Charges, and does to the connection what it would do to one of its own. */
  charge(tx: unknown, label: string, ending: string): Promise<void>;
  /** What somebody else does who gets the connection. */
  other(): Promise<unknown>;
  count(label: string): Promise<number>;
  close(): Promise<unknown>;
}

type Endable = Record<string, () => Promise<void> | undefined>;

const countInPostgres = async (label: string): Promise<number> => Number((await postgres.pool.query('SELECT count(*) FROM charges WHERE label = $1', [label])).rows[0].count);

const drivers: Record<string, () => Driver> = {
  pg() {
    const pool = new Pool({ ...postgres.place, max: 2 });
    return {
      store: postgresDedupStore(fromPg(pool)) as DedupStore,
      async charge(tx, label, ending) {
        await (tx as Pool).query('INSERT INTO charges (label) VALUES ($1)', [label]);
        await (tx as Endable)[ending]?.();
      },
      other: () => Promise.all([pool.query('ROLLBACK'), pool.query('ROLLBACK')]),
      count: countInPostgres,
      close: () => pool.end(),
    };
  },
  mysql2() {
    const pool = createPool({ ...mysql.place, connectionLimit: 2 });
    return {
      store: mysqlDedupStore(fromMysql2(pool)) as DedupStore,
      async charge(tx, label, ending) {
        await (tx as typeof pool).query('INSERT INTO charges (label) VALUES (?)', [label]);
        await (tx as Endable)[ending]?.();
      },
      other: () => Promise.all([pool.query('ROLLBACK'), pool.query('ROLLBACK')]),
      async count(label) {
        const [[row]] = await mysql.pool.query<never[]>('SELECT count(*) AS n FROM charges WHERE label = ?', [label]);
        return (row as unknown as { n: number }).n;
      },
      close: () => pool.end(),
    };
  },
  knex() {
    const database = knex({ client: 'pg', connection: { ...postgres.place }, pool: { min: 0, max: 2 } });
    return {
      store: postgresDedupStore(fromKnex(database)) as DedupStore,
      async charge(tx, label, ending) {
        await (tx as Knex)('charges').insert({ label });
        await (tx as Endable)[ending]?.();
      },
      other: async () => {},
      count: countInPostgres,
      close: () => database.destroy(),
    };
  },
};

const postgresJs = (): Driver => {
  const client = postgresJsClient({ ...postgres.place, username: postgres.place.user, max: 2, onnotice: () => {} });
  return {
    store: postgresDedupStore(fromPostgresJs(client)) as DedupStore,
    charge: async (tx, label) => void (await (tx as typeof client)`INSERT INTO charges (label) VALUES (${label})`),
    other: async () => {},
    count: countInPostgres,
    close: () => client.end(),
  };
};

const kysely = (): Driver => {
  const database = new Kysely<{ charges: { label: string } }>({ dialect: new PostgresDialect({ pool: new Pool({ ...postgres.place, max: 2 }) }) });
  return {
    store: postgresDedupStore(fromKysely(database)) as DedupStore,
    charge: async (tx, label) => void (await (tx as typeof database).insertInto('charges').values({ label }).execute()),
    other: async () => {},
    count: countInPostgres,
    close: () => database.destroy(),
  };
};

const late: Record<string, () => Driver> = { ...drivers, 'postgres.js': postgresJs, kysely };

it.each([
  ['pg', 'release'], ['mysql2', 'release'], ['mysql2', 'end'], ['mysql2', 'beginTransaction'], ['mysql2', 'commit'], ['mysql2', 'rollback'], ['knex', 'commit'], ['knex', 'rollback'],
])('%s: a handler that calls %s() on its transaction hears that it must not, and nothing of it stays', async (name, ending) => {
  const driver = (drivers[name] as () => Driver)();
  const failures: unknown[] = [];
  const dedup = createDedup({ store: driver.store, scope: () => 'acme', on: { failed: error => failures.push(error) } });
  const label = `${name} ${ending}`;
  const send = (end: string): Promise<Response> =>
    dedup.handle(requestOf({ key: ending }), async (_request, context) => {
      await driver.charge(await context.transaction(), label, end);
      await driver.other();
      return new Response('charged', { status: 201 });
    }, { name });
  try {
    expect([(await send(ending)).status, String(failures)]).toEqual([500, expect.stringContaining(`${ending}() was called on a transaction that samekey has opened`)]);
    expect(await driver.count(label)).toBe(0);
    expect([(await send('nothing')).status, await driver.count(label)]).toEqual([201, 1]);
    expect([(await send('nothing')).headers.get('idempotent-replayed'), await driver.count(label)]).toEqual(['true', 1]);
  } finally {
    await driver.close();
  }
});

it.each(Object.keys(late))('%s: what a handler does on its transaction after its answer is done on no connection of somebody else', async name => {
  const driver = (late[name] as () => Driver)();
  const dedup = createDedup({ store: driver.store, scope: () => 'acme', on: { failed: () => {} } });
  const label = `${name} late`;
  let tx: unknown;
  try {
    const response = await dedup.handle(requestOf({ key: 'late' }), async (_request, context) => {
      tx = await context.transaction();
      return new Response('answered too early', { status: 503 });
    }, { name });
    expect(response.status).toBe(503);
    await expect((async () => driver.charge(tx, label, 'nothing'))()).rejects.toThrow('The transaction is over');
    expect(await driver.count(label)).toBe(0);
  } finally {
    await driver.close();
  }
});
