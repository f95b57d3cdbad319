import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { createDedup, type DedupStore, type HandlerContext } from '../../../src/server/index.js';
import { migrate } from '../../../src/server/migrate.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';
import { mysqlDedupStore } from '../../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { sqliteDedupStore } from '../../../src/server/stores/sqlite.js';
import { fromNodeSqlite } from '../../../src/sql/node-sqlite.js';
import { gate } from '../../support/gate.js';
import { openForAll } from '../../support/open-for-all.js';
import { bePatient } from '../../support/patience.js';
import { isReplay, requestOf } from '../support/endpoint.js';
import { freshMysql, type MysqlDatabase } from '../support/mysql.js';
import { freshPostgres, type PostgresDatabase } from '../support/postgres.js';

bePatient();

let postgres: PostgresDatabase;
let mysql: MysqlDatabase;
const sqlite = fromNodeSqlite(new DatabaseSync(':memory:'));
openForAll(async () => {
  mysql = await freshMysql();
  postgres = await freshPostgres();
  await migrate(sqlite, 'sqlite');
  return () => Promise.all([postgres.drop(), mysql.drop()]);
});

type Work = (request: Request, context: HandlerContext) => Response | Promise<Response>;

const NAME = { name: 'charge' };
const charged: Work = () => new Response('charged');

const send = (store: DedupStore, key: string, work = charged): Promise<Response> =>
  createDedup({ store, scope: () => 'acme', on: { failed: () => {} } }).handle(requestOf({ key }), work, NAME);

const stores: Record<string, (table?: string) => DedupStore> = {
  'postgres-tx': table => postgresDedupStore(postgres.database, { table }) as DedupStore,
  'postgres-single-tx': table => postgresDedupStore(postgres.database, { table, mode: 'single-tx' }) as DedupStore,
  'postgres-lease': table => postgresDedupStore(postgres.database, { table, mode: 'lease' }) as DedupStore,
  'mysql-tx': table => mysqlDedupStore(mysql.database, { table }) as DedupStore,
  'sqlite': table => sqliteDedupStore(sqlite, { table }) as DedupStore,
};
const names = Object.keys(stores);
const storeOf = (name: string, table?: string): DedupStore => (stores[name] as (table?: string) => DedupStore)(table);

const migrateFor = (name: string, table?: string): Promise<void> => {
  if (name.startsWith('postgres')) return migrate(postgres.database, 'postgres', { table });
  return name.startsWith('mysql') ? migrate(mysql.database, 'mysql', { table }) : migrate(sqlite, 'sqlite', { table });
};

describe('a migration of a table in use', () => {
  it.each(names.filter(name => name !== 'sqlite'))('waits for no handler, and lets no other key wait; %s', async name => {
    const store = storeOf(name);
    const [entered, end] = [gate(), gate()];
    const slow = send(store, `slow-${name}`, async (_request, context) => {
      await context.transaction();
      entered.open();
      await end.opened;
      return new Response('slow');
    });
    await entered.opened;
    await migrateFor(name);
    expect((await send(store, `other-${name}`)).status).toBe(200);
    end.open();
    expect(await (await slow).text()).toBe('slow');
  });
});

describe('a table of one’s own name', () => {
  it.each(names.flatMap(name => ['DedupKeys', 'order'].map(table => [name, table] as const)))('%s: %s', async (name, table) => {
    await migrateFor(name, table);
    await migrateFor(name, table);
    const store = storeOf(name, table);
    expect([(await send(store, name)).status, isReplay(await send(store, name))]).toEqual([200, true]);
  });
});

describe('answers that are to be kept for ever', () => {
  it.each(names)('%s', async name => {
    const dedup = createDedup({ store: storeOf(name), scope: () => 'for ever', retention: Infinity, on: { failed: () => {} } });
    const call = (): Promise<Response> => dedup.handle(requestOf({ key: name }), charged, NAME);
    expect([(await call()).status, isReplay(await call())]).toEqual([200, true]);
  });
});

it.each([{ lease: 0 }, { lease: Number.NaN }, { retention: -1 }, { keyRetention: Number.NaN }, { wait: Number.NaN }, { maxRetryAfter: -1 }])('a duration that is none is refused when the dedup is made: %o', options => {
  expect(() => createDedup({ store: memoryDedupStore(), scope: () => 'acme', ...options })).toThrow(/is (?:0|NaN|-1); ms were expected/);
});
