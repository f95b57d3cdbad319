import { createPool, type Pool, type PoolOptions } from 'mysql2/promise';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { fromMysql2 } from '../../src/sql/index.js';
import { claimOf, DAY, win } from '../../src/testing/dedup/subject.js';
import { describeDedupStore } from '../../src/testing/index.js';
import { openForAll } from '../support/open-for-all.js';
import { freshMysql, type MysqlDatabase } from './support/mysql.js';

/** More than any case takes on a busy machine. */
const DRIFT_MS = 5_000;

let db: MysqlDatabase;
openForAll(async () => {
  db = await freshMysql();
  return db.drop;
});

const connect = (session: string, options: PoolOptions = {}): Pool => {
  const pool = createPool({ ...db.place, connectionLimit: 4, ...options });
  pool.on('connection', connection => connection.query(session));
  onTestFinished(() => pool.end());
  return pool;
};

/** Skips the tests of a block where the server does not know a time zone. */
const needZone = (zone: string): void => {
  beforeEach(async context => {
    const [[row]] = await db.pool.query<never[]>("SELECT CONVERT_TZ('2026-01-01', 'UTC', ?) AS time", [zone]);
    const isKnown = (row as unknown as { time: unknown }).time !== null;
    context.skip(!isKnown, `the server does not know ${zone}; give it the time zones with mysql_tzinfo_to_sql`);
  });
};

describe.each(['Asia/Tokyo', 'America/New_York', '-12:00'])('C93: in sessions with the time zone %s', zone => {
  if (zone.includes('/')) needZone(zone);

  describeDedupStore({ describe, it }, 'mysql', () => {
    const pool = connect(`SET time_zone = '${zone}'`);
    // Ageing and emptying go through sessions of another zone.
    return { store: mysqlDedupStore(fromMysql2(pool), { mode: 'lease' }), pass: db.pass, drift: DRIFT_MS, dispose: db.clear };
  });
});

const MINUTE = 60_000;

describe('C93: an hour that the clock of a session shows twice, or skips', () => {
  needZone('America/New_York');

  it.each([
    ['twice', Date.UTC(2026, 10, 1, 5, 30)],
    ['never', Date.UTC(2026, 2, 8, 6, 30)],
  ])('is as long as any other one (%s)', async (_how, start) => {
    const pool = connect("SET time_zone = 'America/New_York'", { connectionLimit: 1 });
    const store = mysqlDedupStore(fromMysql2(pool), { mode: 'lease' });
    const setTime = (ms: number): Promise<unknown> => pool.query('SET timestamp = ?', [ms / 1000]);
    await setTime(start);
    await win(store, 'a', { lease: 45 * MINUTE, effects: 'marked' });
    expect(await store.get(claimOf('a'))).toMatchObject({ firstSeenAt: start, leaseUntil: start + 45 * MINUTE, keyExpiresAt: start + DAY });
    await setTime(start + 40 * MINUTE);
    expect(await store.claim(claimOf('b', { effects: 'marked' }))).toMatchObject({ kind: 'in-progress', leaseLeft: 5 * MINUTE });
    await setTime(start + 45 * MINUTE);
    expect(await store.claim(claimOf('b', { effects: 'marked' }))).toMatchObject({ kind: 'won', fence: 2 });
    await db.clear();
  });
});

describe('a connection that tells changed rows instead of found ones', () => {
  describeDedupStore({ describe, it }, 'mysql', () => {
    const pool = connect('DO 0', { flags: ['-FOUND_ROWS'] });
    return { store: mysqlDedupStore(fromMysql2(pool), { mode: 'lease' }), pass: db.pass, drift: DRIFT_MS, dispose: db.clear };
  });
});

describe('texts', () => {
  it('that only case, accents or spaces at the end tell apart are keys and scopes of their own, and come back as they are', async () => {
    const store = mysqlDedupStore(db.database, { mode: 'lease' });
    for (const text of ['a', 'A', 'á', 'a ', 'a\0', 'ß', 'ss', '日本', '🚀']) {
      expect(await store.claim(claimOf('o', { scope: text }))).toMatchObject({ kind: 'won', fence: 1 });
      expect(await store.claim(claimOf('o', { scope: 'one', key: text }))).toMatchObject({ kind: 'won', fence: 1 });
      expect(await store.get({ scope: 'one', key: text })).toMatchObject({ scope: 'one', key: text });
    }
    await db.clear();
  });
});
