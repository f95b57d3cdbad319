import { expect, it } from 'vitest';
import { createDedup } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { fromPg } from '../../src/sql/index.js';

const whole = { store: memoryDedupStore(), scope: () => 'acme' };

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
const created = (options?: unknown): (() => unknown) => () => createDedup(options as never);

it('a dedup without options, or without a store or a scope, is refused when it is made', () => {
  expect(refused(created())).toBe('The options of createDedup are undefined; an object was expected, with store and scope in it.');
  expect(refused(created({ scope: whole.scope }))).toMatch(/^createDedup: store is undefined; a dedup store was expected, such as postgresDedupStore/);
  expect(refused(created({ store: whole.store }))).toBe('createDedup: scope is undefined; a function was expected. It says whose key it is, as in request => tenantOf(request).');
  expect(refused(created({ ...whole, scope: 'acme' }))).toMatch('scope is "acme"; a function was expected');
});

const method = (): void => {};

it.each([
  ['a pool of pg', { connect: method, query: method }, 'use postgresDedupStore(fromPg(pool))'],
  ['a pool of mysql2', { getConnection: method, execute: method, query: method }, 'use mysqlDedupStore(fromMysql2(pool))'],
  ['a database of node:sqlite', { prepare: method, exec: method }, 'use sqliteDedupStore(fromNodeSqlite(database))'],
  ['a client of redis', { sendCommand: method, connect: method }, 'use redisDedupStore(fromNodeRedis(client))'],
  ['a client of ioredis', { call: method, sendCommand: method }, 'use redisDedupStore(fromIoredis(client))'],
  ['a database of samekey', fromPg({ connect: method, query: method } as never), 'use postgresDedupStore(database)'],
  ['a connection to Redis', { send: method, nodes: method }, 'use redisDedupStore(connection)'],
  ['a URL', 'postgres://shop:secret@db.example/shop', 'store is the text "postgres://…"; a dedup store was expected'],
])('%s instead of a store is refused with the way to make one of it', (_what, store, way) => {
  expect(refused(created({ ...whole, store }))).toContain(way);
});

it('no message shows the password of a URL', () => {
  expect(refused(created({ ...whole, store: 'postgres://shop:secret@db.example/shop' }))).not.toContain('secret');
});

it.each([
  [{ effects: 'externl' }, `effects is "externl"; it can be 'external', 'marked', 'idempotent'.`],
  [{ onExpired: 'reject' }, `onExpired is "reject"; it can be 'fresh', 'refuse'.`],
  [{ methods: 'POST' }, `methods is "POST"; a list of methods in upper case was expected`],
  [{ methods: ['post'] }, `methods is ["post"]; a list of methods in upper case was expected, such as ['POST', 'PATCH'].`],
  [{ required: 'no' }, 'required is "no"; true or false was expected.'],
  [{ maxRequestBytes: Number.NaN }, 'maxRequestBytes is NaN; bytes were expected, 0 or more.'],
  [{ maxAnswerBytes: -1 }, 'maxAnswerBytes is -1; bytes were expected, 0 or more.'],
  [{ wait: '5s' }, 'wait is "5s"; ms were expected, 0 or more.'],
  [{ lease: 0 }, 'lease is 0; ms were expected, 1 or more.'],
  [{ retention: null }, 'retention is null; ms were expected, 0 or more.'],
  [{ keyRetention: 1000 }, 'keyRetention is 1000 ms, but retention 86400000 ms.'],
  [{ retention: 2000, keyRetention: 1000 }, 'give at least 2000, or a shorter retention.'],
  [{ profile: 'stripe' }, 'profile is "stripe"; a profile of samekey/profiles was expected, such as ietf or stripe.'],
  [{ clock: Date }, 'clock is a function; a clock was expected, with now() and sleep().'],
  [{ on: { fialed: method } }, 'on of createDedup has no option "fialed". Look for a misspelt word: it has executed, replayed, refused, failed.'],
  [{ leese: 30_000 }, 'createDedup has no option "leese". Look for a misspelt word: it has store, scope,'],
])('an option that cannot work is refused when the dedup is made: %o', (options, message) => {
  expect(refused(created({ ...whole, ...options }))).toContain(message);
});

it('an option that is undefined has its default, and a key may be kept longer than its answer', () => {
  expect(created({ ...whole, lease: undefined, on: { failed: undefined } })).not.toThrow();
  expect(created({ ...whole, retention: Infinity, keyRetention: Infinity, maxRequestBytes: Infinity })).not.toThrow();
  expect(created({ ...whole, retention: 1000, keyRetention: 2000 })).not.toThrow();
});

it('a call of handle without the name of its endpoint is refused before anything is done', async () => {
  const { handle } = createDedup(whole);
  const request = (): Request => new Request('https://shop.example/charges', { method: 'POST', body: '{}' });
  const call = (options?: unknown): Promise<unknown> => handle(request(), () => new Response('done'), options as never);
  await expect(call()).rejects.toThrow(new TypeError('The options of dedup.handle are undefined; an object was expected, with name in it.'));
  await expect(call({})).rejects.toThrow(new TypeError('dedup.handle: name is undefined; a text that is not empty was expected.'));
  await expect(call({ name: '' })).rejects.toThrow(new TypeError('dedup.handle: name is ""; a text that is not empty was expected.'));
  await expect(call({ name: 'charge', effects: 'none' })).rejects.toThrow("dedup.handle: effects is \"none\"; it can be 'external', 'marked', 'idempotent'.");
});
