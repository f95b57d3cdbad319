import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { migrate } from '../../src/server/migrate.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { fromNodeSqlite, type SqlDatabase } from '../../src/sql/index.js';
import { claimOf, completed, HOUR, win } from '../../src/testing/dedup/subject.js';
import { bePatient } from '../support/patience.js';
import { spiedDatabase, type Sent } from './support/spied-database.js';
import { freshSqlite, type SqliteFile } from './support/sqlite.js';
import { openShop } from './transactions/shop.js';

bePatient();

let file: SqliteFile;
beforeEach(async () => {
  file = await freshSqlite();
});
afterEach(() => file.close());

const pragma = (sqlite: DatabaseSync, name: string): unknown => Object.values(sqlite.prepare(`PRAGMA ${name}`).get() ?? {})[0];

describe('C77: the journal', () => {
  it('is a write-ahead log that is synced with every commit', async () => {
    file.sqlite.exec('PRAGMA synchronous = OFF');
    await sqliteDedupStore(file.database).claim(claimOf('a'));
    expect([pragma(file.sqlite, 'journal_mode'), pragma(file.sqlite, 'synchronous')]).toEqual(['wal', 2]);
  });

  it('is set before the first statement, whatever that is, and once', async () => {
    const sent: string[] = [];
    const store = sqliteDedupStore(spiedDatabase(file.database, ({ text }) => void sent.push(text)));
    await Promise.all([store.get(claimOf('a')), store.claim(claimOf('a')), store.transact?.(async () => {})]);
    await store.purge();
    const settings = sent.filter(text => /sqlite_version|PRAGMA/.test(text));
    expect([settings, sent.slice(0, 3)]).toEqual([settings.slice(0, 3), [expect.stringContaining('sqlite_version'), 'PRAGMA journal_mode = wal', 'PRAGMA synchronous = FULL']]);
  });

  it('is asked for again when it could not be had at first', async () => {
    let refusals = 1;
    const store = sqliteDedupStore(spiedDatabase(file.database, ({ text }) => {
      if (text.startsWith('PRAGMA journal_mode') && refusals-- > 0) throw new Error('database is locked');
    }));
    await expect(store.claim(claimOf('a'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: expect.objectContaining({ message: 'database is locked' }) });
    expect((await store.claim(claimOf('a'))).kind).toBe('won');
  });

  /** As a SQLite answers that has the fault. */
  const older = (database: SqlDatabase<DatabaseSync>): SqlDatabase<DatabaseSync> => ({
    ...database,
    query: (text, values) => database.query(text.replace('sqlite_version()', "'3.50.4'"), values),
  });

  it('is a rollback journal where a shared write-ahead log can lose pages', async () => {
    const store = sqliteDedupStore(older(file.database));
    expect((await store.claim(claimOf('a'))).kind).toBe('won');
    expect([pragma(file.sqlite, 'journal_mode'), pragma(file.sqlite, 'synchronous')]).toEqual(['delete', 2]);
  });

  it('is refused there when others have the file open with a write-ahead log', async () => {
    const other = new DatabaseSync(file.path);
    onTestFinished(() => other.close());
    other.exec('PRAGMA journal_mode = WAL; SELECT count(*) FROM idempotency_keys');
    const store = sqliteDedupStore(older(fromNodeSqlite(file.sqlite, { busyTimeout: 0 })));
    await expect(store.claim(claimOf('a'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('Update Node to 24.15') });
  });

  it('is none for a database in memory, which nobody shares', async () => {
    const sqlite = new DatabaseSync(':memory:');
    onTestFinished(() => sqlite.close());
    const database = fromNodeSqlite(sqlite);
    await migrate(database, 'sqlite');
    expect((await sqliteDedupStore(database).claim(claimOf('a'))).kind).toBe('won');
  });
});

it('C77: every transaction of the store begins IMMEDIATE, and every write outside of one is one statement', async () => {
  const [executed, prepared]: string[][] = [[], []];
  const spied = {
    prepare(text: string) {
      // Outside of a transaction a savepoint would begin one, and not IMMEDIATE.
      if (!(text.startsWith('SAVEPOINT') && file.sqlite.isTransaction)) prepared?.push(text);
      return file.sqlite.prepare(text);
    },
    exec(text: string) {
      executed?.push(text);
      file.sqlite.exec(text);
    },
  };
  const store = sqliteDedupStore(fromNodeSqlite(spied));
  const shop = openShop({ store, insert: async () => {}, charges: async () => 0, pass: async () => {} });
  await shop.send(async (_request, context) => (await context.effectStarted(), await context.transaction(), new Response('done')));
  await shop.send(async (_request, context) => (await context.transaction(), new Response('no', { status: 402 })), { key: 'refused' });
  await store.purge();
  expect([...new Set(executed)].sort()).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK']);
  expect(prepared?.filter(text => /^\s*(BEGIN|SAVEPOINT|COMMIT)/i.test(text) || /;\s*\S/.test(text))).toEqual([]);
});

interface Filling {
  readonly status?: string;
  /** ms from now. */
  readonly expires?: number;
  /** ms from now. */
  readonly resultExpires?: number;
}

/** Rows as a run leaves them. */
const fill = (count: number, prefix: string, { status = 'completed', expires = 24 * HOUR, resultExpires = expires }: Filling = {}): void =>
  file.sqlite.exec(`WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < ${count})
    INSERT INTO idempotency_keys (scope, id_key, request_hash, status, response_code, response_headers, response_body, owner, fence, attempts, lease_until,
      effect_started, operation_ref, created_at, settled_at, result_expires_at, expires_at, revision)
    SELECT '4:acme6:charge', '${prefix}-' || n, 'v1:sha256:aa', '${status}', 201, '[]', x'00', 'o', 1, 1, 0, 0, 'ref', 0, 0,
      unixepoch('now') * 1000 + ${resultExpires}, unixepoch('now') * 1000 + ${expires}, 1 FROM seq`);

describe('what the store asks of a large table', () => {
  const sent = new Map<string, Sent>();

  beforeEach(() => {
    sent.clear();
    fill(20_000, 'live');
    fill(200, 'dead', { expires: -HOUR });
    fill(100, 'bodiless', { resultExpires: -HOUR });
    fill(5, 'doubt', { status: 'indeterminate', expires: -HOUR });
  });

  /** Steps that read whole tables. What is in doubt has an index of its own, which is read whole, because all of it is asked for. */
  const wasteOf = ({ text }: Sent): unknown[] =>
    file.sqlite.prepare(`EXPLAIN QUERY PLAN ${text}`).all().map(step => String(step['detail'])).filter(step => step.startsWith('SCAN') && !/CONSTANT ROW|ROW VALUES|INDEX idempotency_keys_indeterminate/.test(step));

  const allWaste = (): unknown[] => [...sent.values()].filter(({ text }) => /^(SELECT|UPDATE|DELETE).*idempotency_keys/s.test(text)).flatMap(wasteOf);

  it('is looked up by key and by what is due, never read whole', async () => {
    const store = sqliteDedupStore(spiedDatabase(file.database, statement => void sent.set(statement.text, statement)));
    const held = await win(store, 'a');
    await store.renew(held, HOUR, true);
    await store.settle(held, completed());
    await store.settle(held, completed());
    for (const key of ['live-7', 'dead-7', 'doubt-3']) await store.claim(claimOf('b', { scope: '4:acme6:charge', key }));
    await store.resolve({ scope: '4:acme6:charge', key: 'doubt-3' }, { to: 'retryable', keyRetention: HOUR });
    expect(await store.purge({ dropIndeterminateAfter: 365 * 24 * HOUR })).toMatchObject({ bodiesDropped: 100, more: false });
    expect([sent.size > 8, allWaste()]).toEqual([true, []]);
  });

  it('55: a purge of many rows goes on in batches while claims are answered', async () => {
    fill(5_000, 'old', { expires: -HOUR });
    const store = sqliteDedupStore(file.database);
    let [deleted, claims, more] = [0, 0, true];
    while (more) {
      const [report, ...results] = await Promise.all([store.purge({ limit: 1_000 }), ...Array.from({ length: 20 }, (_, at) => store.claim(claimOf('a', { key: `k-${claims + at}` })))]);
      ({ more } = report);
      deleted += report.deleted;
      claims += results.filter(({ kind }) => kind === 'won').length;
    }
    expect([deleted, claims % 20]).toEqual([5_200, 0]);
  });
});

it('migrate may be called again: what is stored stays', async () => {
  const store = sqliteDedupStore(file.database);
  await store.claim(claimOf('a'));
  await migrate(file.database, 'sqlite');
  expect((await store.claim(claimOf('b'))).kind).toBe('in-progress');
});
