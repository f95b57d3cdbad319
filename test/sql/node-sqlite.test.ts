import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { asNumber, fromNodeSqlite, onNodeSqlite, type SqlExecutor } from '../../src/sql/index.js';
import { manualClock } from '../support/manual-clock.js';
import { failureOf, gate } from './facts/items.js';
import { describeSqlDatabase } from './suite.js';

const MEMORY = ':memory:';

const newFile = (): string => join(mkdtempSync(join(tmpdir(), 'samekey-test-')), 'test.db');
const remove = (path: string): void => rmSync(dirname(path), { recursive: true, force: true });

/** The path of a database that lives as long as the test. */
const file = (): string => {
  const path = newFile();
  onTestFinished(() => remove(path));
  return path;
};

/** As a server should open it. */
const openFile = (path: string): DatabaseSync => {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  return database;
};

const CONFIGURATIONS: readonly [string, path: () => string, (path: string) => DatabaseSync][] = [
  ['in memory', () => MEMORY, path => new DatabaseSync(path)],
  ['on a file with a write-ahead log', newFile, openFile],
  ['on a file with a rollback journal', newFile, path => new DatabaseSync(path)],
  ['that reads integers as bigint', () => MEMORY, path => new DatabaseSync(path, { readBigInts: true })],
];

for (const [name, newPath, open] of CONFIGURATIONS) {
  describeSqlDatabase<DatabaseSync>(`fromNodeSqlite ${name}`, async () => {
    const path = newPath();
    const sqlite = open(path);
    const subject = {
      database: fromNodeSqlite(sqlite),
      dialect: 'sqlite',
      through: async (database: DatabaseSync, text: string) => database.exec(text),
      lent: () => Number(sqlite.isTransaction),
    } as const;
    const close = async (): Promise<void> => {
      sqlite.close();
      if (path !== MEMORY) remove(path);
    };
    return { subject, close };
  });
}

const READ = 'SELECT amount FROM item';
const amountOf = async (sql: SqlExecutor): Promise<number> => asNumber((await sql.query(READ)).rows[0]?.['amount']);

const openCounter = (path: string): void => {
  const sqlite = openFile(path);
  sqlite.exec('CREATE TABLE item (amount integer); INSERT INTO item VALUES (0)');
  sqlite.close();
};

describe('several connections to one file', () => {
  test('C77: 200 transactions that read and then write, on two connections, are never refused as busy, and none is lost', async () => {
    const path = file();
    openCounter(path);
    const [one, other] = [fromNodeSqlite(openFile(path)), fromNodeSqlite(openFile(path))];
    await Promise.all(Array.from({ length: 200 }, (_, at) => (at % 2 === 0 ? one : other).transaction(async sql => {
      const amount = await amountOf(sql);
      await new Promise(resolve => setImmediate(resolve));
      await sql.query('UPDATE item SET amount = ?', [amount + 1]);
    })));
    expect(await amountOf(one)).toBe(200);
  });

  test('C77: every transaction begins IMMEDIATE', async () => {
    const sqlite = new DatabaseSync(MEMORY);
    const begun: string[] = [];
    const spied = { prepare: (text: string) => sqlite.prepare(text), exec: (text: string) => (begun.push(text), sqlite.exec(text)) };
    const database = fromNodeSqlite(spied);
    await database.transaction(async () => {});
    await failureOf(database.transaction(() => Promise.reject(new Error('undo'))));
    expect(begun).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'BEGIN IMMEDIATE', 'ROLLBACK']);
  });

  test('C77: a database that another process has is waited for, and the event loop goes on', async () => {
    const path = file();
    openCounter(path);
    const [other, clock] = [openFile(path), manualClock()];
    const database = fromNodeSqlite(openFile(path), { clock });
    other.exec('BEGIN IMMEDIATE');
    const writes = [database.query('UPDATE item SET amount = 1'), database.transaction(sql => sql.query('UPDATE item SET amount = amount + 1'))];
    await clock.advance(1000);
    expect(clock.sleeping).toBeGreaterThan(0);
    other.exec('COMMIT');
    await clock.advance(10);
    await Promise.all(writes);
    expect(await amountOf(database)).toBe(2);
  });

  test('a database that another process has for too long is an error that says so', async () => {
    const path = file();
    openCounter(path);
    const [other, clock] = [openFile(path), manualClock()];
    const database = fromNodeSqlite(openFile(path), { clock, busyTimeout: 100 });
    other.exec('BEGIN IMMEDIATE');
    for (const attempt of [() => database.query('UPDATE item SET amount = 1'), () => database.transaction(sql => amountOf(sql))]) {
      const failure = failureOf(attempt());
      await clock.advance(200);
      expect(await failure).toMatchObject({ errcode: 5, message: 'database is locked' });
    }
  });
});

describe('users of one connection', () => {
  test('take turns: while a transaction is open, the statements of others wait', async () => {
    const database = fromNodeSqlite(new DatabaseSync(MEMORY));
    await database.query('CREATE TABLE item (amount integer)');
    const [begun, done] = [gate(), gate()];
    const first = failureOf(database.transaction(async sql => {
      await sql.query('INSERT INTO item VALUES (1)');
      begun.open();
      await done.passed;
      throw new Error('undo');
    }));
    await begun.passed;
    const others = [database.query('INSERT INTO item VALUES (2)'), database.transaction(sql => sql.query('INSERT INTO item VALUES (3)'))];
    done.open();
    await Promise.all([first, ...others]);
    expect((await database.query(`${READ} ORDER BY amount`)).rows).toEqual([{ amount: 2 }, { amount: 3 }].map(row => Object.assign(Object.create(null) as object, row)));
  });

  test('who waits for the turn that it has itself is told so, and the database goes on', async () => {
    const clock = manualClock();
    const database = fromNodeSqlite(new DatabaseSync(MEMORY), { clock, busyTimeout: 100 });
    const stuck = failureOf(database.transaction(() => database.query('SELECT 1')));
    await clock.advance(100);
    expect(await stuck).toMatchObject({ errcode: 5, message: expect.stringContaining('use what it is given') });
    expect((await database.query('SELECT 1 AS one')).rows).toMatchObject([{ one: 1 }]);
  });

  test('onNodeSqlite works in the transaction that is open, without a turn', async () => {
    const sqlite = new DatabaseSync(MEMORY);
    const [database, sql] = [fromNodeSqlite(sqlite), onNodeSqlite(sqlite)];
    await database.query('CREATE TABLE item (amount integer)');
    await failureOf(database.transaction(async () => {
      expect((await sql.query('INSERT INTO item VALUES (?)', [1])).changed).toBe(1);
      throw new Error('undo');
    }));
    expect((await database.query(READ)).rows).toEqual([]);
  });

  test('a failure after which SQLite has rolled back by itself is the failure that is told', async () => {
    const sqlite = new DatabaseSync(MEMORY);
    const database = fromNodeSqlite(sqlite);
    await database.query('CREATE TABLE item (amount integer UNIQUE)');
    const failure = await failureOf(database.transaction(async sql => {
      await sql.query('INSERT INTO item VALUES (1)');
      await sql.query('INSERT OR ROLLBACK INTO item VALUES (1)');
    }));
    expect(failure).toMatchObject({ errcode: 2067 });
    expect((await database.query(READ)).rows).toEqual([]);
  });

  test('statements are prepared once, and forgotten when too many others came', async () => {
    const sqlite = new DatabaseSync(MEMORY);
    const prepared: string[] = [];
    const spied = { prepare: (text: string) => (prepared.push(text), sqlite.prepare(text)), exec: (text: string) => sqlite.exec(text) };
    const database = fromNodeSqlite(spied);
    for (let at = 0; at < 3; at += 1) await database.query('SELECT 1');
    expect(prepared).toEqual(['SELECT 1']);
    for (let at = 0; at < 200; at += 1) await database.query(`SELECT ${at} AS another`);
    await database.query('SELECT 1');
    expect(prepared.filter(text => text === 'SELECT 1')).toHaveLength(2);
  });
});
