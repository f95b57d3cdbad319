import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, type TestContext } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { StoreUnavailableError } from '../../src/errors.js';
import { createDedup, type DedupStore } from '../../src/server/index.js';
import { migrate, schemaOf } from '../../src/server/migrate.js';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../src/server/stores/postgres.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { fromNodeSqlite } from '../../src/sql/index.js';
import { openOrSkip } from '../support/open-for-all.js';
import { requestOf } from './support/endpoint.js';
import { freshMysql } from './support/mysql.js';
import { freshPostgres } from './support/postgres.js';
import { freshSqlite } from './support/sqlite.js';

interface Place {
  storeOn(table: string): DedupStore<unknown>;
  close(): unknown;
}

const PLACES: readonly (readonly [dialect: 'postgres' | 'mysql' | 'sqlite', mode: string, open: (context: TestContext) => Promise<Place>])[] = [
  ...(['tx', 'single-tx', 'lease'] as const).map(mode => ['postgres', mode, async (context: TestContext): Promise<Place> => {
    const { database, drop } = await openOrSkip(context, freshPostgres());
    return { storeOn: table => postgresDedupStore(database, { table, mode }) as DedupStore<unknown>, close: drop };
  }] as const),
  ...(['tx', 'lease'] as const).map(mode => ['mysql', mode, async (context: TestContext): Promise<Place> => {
    const { database, drop } = await openOrSkip(context, freshMysql());
    return { storeOn: table => mysqlDedupStore(database, { table, mode }) as DedupStore<unknown>, close: drop };
  }] as const),
  ['sqlite', 'lease', async () => {
    const { database, close } = await freshSqlite();
    return { storeOn: table => sqliteDedupStore(database, { table }) as DedupStore<unknown>, close };
  }],
];

describe.each(PLACES)('%s, mode %s', (dialect, _mode, open) => {
  it.for([
    ['no table', 'absent'],
    ['somebody else’s table', 'charges'],
  ] as const)('a store on %s answers 503, and says what to do to those who listen', async ([_what, table], context) => {
    const place = await open(context);
    const heard: unknown[] = [];
    const store = place.storeOn(table);
    const clock = { ...systemClock, sleep: async () => {} };
    const dedup = createDedup({ store, clock, scope: () => 'acme', on: { failed: error => void heard.push(error) } });
    const response = await dedup.handle(requestOf({ key: 'k' }), () => new Response('done'), { name: 'charge' });
    await expect(dedup.purge()).rejects.toBeInstanceOf(StoreUnavailableError);
    await place.close();
    expect(response.status).toBe(503);
    const [error] = heard as [StoreUnavailableError];
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.message).toMatch(new RegExp(`^The table ${table} is missing, or is not samekey's: .+\\. Run migrate\\(database, '${dialect}', { table: '${table}' }\\), or name the store's table`));
    expect((error.cause as Error).message).not.toBe('');
    expect(error.message).toContain((error.cause as Error).message);
  });
});

describe('migrate', () => {
  const untyped = migrate as (...values: unknown[]) => Promise<void>;
  const sqlite = (): DatabaseSync => new DatabaseSync(':memory:');

  it('refuses a dialect that there is none of, and a client that is no database', async () => {
    await expect(untyped(fromNodeSqlite(sqlite()), 'postgresql')).rejects.toThrow(new TypeError(`The dialect of the schema is "postgresql"; it can be 'postgres', 'mysql', 'sqlite'.`));
    await expect(untyped(fromNodeSqlite(sqlite()))).rejects.toThrow('The dialect of the schema is undefined');
    await expect(untyped(sqlite(), 'sqlite')).rejects.toThrow(/^migrate: the database is an object of the class DatabaseSync; .* wrap it, as in fromNodeSqlite\(database\)\.$/);
    await expect(untyped(fromNodeSqlite(sqlite()), 'sqlite', { tabel: 'keys' })).rejects.toThrow('migrate has no option "tabel". Look for a misspelt word: it has table.');
  });

  it('so does the schema as text', async () => {
    await expect(schemaOf('maria' as never)).rejects.toThrow(`The dialect of the schema is "maria"; it can be 'postgres', 'mysql', 'sqlite'.`);
  });
});
