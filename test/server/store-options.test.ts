import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { createPool as createCallbackPool } from 'mysql2';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { createClient } from 'redis';
import { afterAll, describe, expect, it } from 'vitest';
import { createDedup } from '../../src/server/index.js';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../src/server/stores/postgres.js';
import { fromIoredis, fromNodeRedis, fromNodeRedisCluster, redisDedupStore } from '../../src/server/stores/redis.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { fromDrizzle, fromKnex, fromKysely, fromMysql2, fromNodeSqlite, fromPg, fromPostgresJs } from '../../src/sql/index.js';

// None of them connects to anything before it is asked something.
const pool = new Pool();
const mysql = createPool({});
const callbacks = createCallbackPool({});
const sqlite = new DatabaseSync(':memory:');
const redis = createClient();
const ioredis = new Redis({ lazyConnect: true });

afterAll(async () => {
  sqlite.close();
  ioredis.disconnect();
  await Promise.all([pool.end(), mysql.end(), callbacks.promise().end()]);
});

const refused = (call: () => unknown): string => {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as Error).message;
  }
  throw new Error('Nothing was refused.');
};

/** As a caller without types may call it. */
const untyped = (call: unknown): ((...values: unknown[]) => unknown) => call as (...values: unknown[]) => unknown;

describe('a driver’s own client', () => {
  it.each([
    ['pg', pool, 'use postgresDedupStore(fromPg(pool))'],
    ['mysql2', mysql, 'use mysqlDedupStore(fromMysql2(pool))'],
    ['node:sqlite', sqlite, 'use sqliteDedupStore(fromNodeSqlite(database))'],
    ['redis', redis, 'use redisDedupStore(fromNodeRedis(client))'],
    ['ioredis', ioredis, 'use redisDedupStore(fromIoredis(client))'],
  ])('of %s is no dedup store; the refusal says how to make one of it', (_name, client, way) => {
    expect(refused(() => untyped(createDedup)({ store: client, scope: () => 'acme' }))).toContain(way);
  });

  it('is no database either', () => {
    expect(refused(() => untyped(postgresDedupStore)(pool))).toMatch(/^postgresDedupStore: the database is an object of the class \w+; a database of samekey\/sql was expected.* wrap it, as in fromPg\(pool\)\.$/);
    expect(refused(() => untyped(mysqlDedupStore)(mysql))).toContain('wrap it, as in fromMysql2(pool).');
    expect(refused(() => untyped(sqliteDedupStore)(sqlite))).toContain('wrap it, as in fromNodeSqlite(database).');
    expect(refused(() => untyped(redisDedupStore)(redis))).toContain('wrap it, as in fromNodeRedis(client).');
    expect(refused(() => untyped(redisDedupStore)(ioredis))).toContain('wrap it, as in fromIoredis(client).');
    expect(refused(() => untyped(postgresDedupStore)())).toContain('the database is undefined; a database of samekey/sql was expected');
  });
});

it.each([
  ['postgresDedupStore', () => untyped(postgresDedupStore)(fromPg(pool), { mode: 'singletx' }), `mode is "singletx"; it can be 'tx', 'single-tx', 'lease'.`],
  ['postgresDedupStore', () => untyped(postgresDedupStore)(fromPg(pool), { tabel: 'keys' }), 'has no option "tabel". Look for a misspelt word: it has table, isolation, control, mode, lockTimeout.'],
  ['postgresDedupStore', () => untyped(postgresDedupStore)(fromPg(pool), { isolation: 'snapshot' }), `isolation is "snapshot"; it can be 'read committed', 'repeatable read', 'serializable'.`],
  ['postgresDedupStore', () => untyped(postgresDedupStore)(fromPg(pool), { lockTimeout: '2s' }), 'lockTimeout is "2s"; ms were expected, 0 or more.'],
  ['postgresDedupStore', () => untyped(postgresDedupStore)(fromPg(pool), { control: 'postgres://db.example' }), 'control is the text "postgres://…"; a database of samekey/sql was expected'],
  ['mysqlDedupStore', () => untyped(mysqlDedupStore)(fromMysql2(mysql), { mode: 'single-tx' }), `mode is "single-tx"; it can be 'tx', 'lease'.`],
  ['sqliteDedupStore', () => untyped(sqliteDedupStore)(fromNodeSqlite(sqlite), { mode: 'tx' }), 'has no option "mode". Look for a misspelt word: it has table, clock.'],
  ['sqliteDedupStore', () => untyped(sqliteDedupStore)(fromNodeSqlite(sqlite), { clock: () => 0 }), 'clock is a function; a clock was expected, with now().'],
  ['redisDedupStore', () => untyped(redisDedupStore)(fromNodeRedis(redis), { ttl: 1000 }), 'has no option "ttl". Look for a misspelt word: it has prefix, timeout,'],
  ['redisDedupStore', () => untyped(redisDedupStore)(fromNodeRedis(redis), { timeout: 0 }), 'timeout is 0; ms were expected, 1 or more.'],
])('%s refuses an option that does not exist or cannot work: %s', (of, call, message) => {
  expect(refused(call)).toMatch(of);
  expect(refused(call)).toContain(message);
});

it.each([
  ['fromPg', fromPg, 'fromPg(new Pool({ connectionString }))'],
  ['fromMysql2', fromMysql2, "createPool of 'mysql2/promise'"],
  ['fromPostgresJs', fromPostgresJs, 'what postgres(url) gives'],
  ['fromKnex', fromKnex, 'fromKnex(knex({ client, connection }))'],
  ['fromKysely', fromKysely, 'a Kysely or a transaction of it'],
  ['fromDrizzle', fromDrizzle, 'fromDrizzle(drizzle({ client: pool }), sql)'],
  ['fromNodeSqlite', fromNodeSqlite, "fromNodeSqlite(new DatabaseSync('shop.db'))"],
  ['fromNodeRedis', fromNodeRedis, 'a client of the package redis'],
  ['fromNodeRedisCluster', fromNodeRedisCluster, 'a cluster of the package redis'],
  ['fromIoredis', fromIoredis, 'fromIoredis(new Redis(url))'],
])('%s refuses nothing, and a URL, and says what it takes', (name, from, way) => {
  expect(refused(() => untyped(from)())).toMatch(`What ${name} was given is undefined; `);
  expect(refused(() => untyped(from)('postgres://shop:secret@db.example/shop'))).toMatch(`What ${name} was given is the text "postgres://…"; `);
  expect(refused(() => untyped(from)())).toContain(way);
});

it('a pool of mysql2 that takes callbacks is refused: every statement would hang', () => {
  expect(refused(() => untyped(fromMysql2)(callbacks))).toMatch(/This one takes callbacks: give what its promise\(\) returns\.$/);
  expect(() => fromMysql2(callbacks.promise())).not.toThrow();
});

it('options of a driver’s database are checked too', () => {
  expect(refused(() => untyped(fromPg)(pool, { prepared: true }))).toContain('fromPg has no option "prepared". Look for a misspelt word: it has prepare.');
  expect(refused(() => untyped(fromNodeSqlite)(sqlite, { busyTimeout: Number.NaN }))).toContain('busyTimeout is NaN; ms were expected, 0 or more.');
  expect(refused(() => untyped(fromDrizzle)({ execute: () => undefined }))).toBe('The second argument of fromDrizzle is undefined; the sql of drizzle-orm was expected.');
});
