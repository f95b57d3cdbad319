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

const request = (): Request => new Request('https://shop.example/charges', { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{}' });

const done = (): Response => new Response('done');

it('a call of handle without the name of its endpoint, a request or a handler is refused before anything is done', async () => {
  const handle = createDedup(whole).handle as (...values: unknown[]) => Promise<Response>;
  await expect(handle(request(), done)).rejects.toThrow(new TypeError('The options of dedup.handle are undefined; an object was expected, with name in it.'));
  await expect(handle(request(), done, {})).rejects.toThrow(new TypeError('dedup.handle: name is undefined; a text that is not empty was expected.'));
  await expect(handle(request(), done, { name: '' })).rejects.toThrow(new TypeError('dedup.handle: name is ""; a text that is not empty was expected.'));
  await expect(handle(request(), done, { name: 'charge', effects: 'none' })).rejects.toThrow(`dedup.handle: effects is "none"; it can be 'external', 'marked', 'idempotent'.`);
  await expect(handle({ method: 'POST', headers: {} }, done, { name: 'charge' })).rejects.toThrow('The request of dedup.handle is an object; a fetch Request was expected. Express and Fastify have adapters');
  await expect(handle(request(), { name: 'charge' })).rejects.toThrow(new TypeError('The handler of dedup.handle is an object; a function was expected.'));
});

it('a request whose body was read already is refused, and asked for unread; where nothing is compared it goes through', async () => {
  const { handle } = createDedup(whole);
  let runs = 0;
  const counting = (): Response => new Response(String((runs += 1)));
  const used = request();
  await used.text();
  const locked = request();
  locked.body?.getReader();
  for (const one of [used, locked]) await expect(handle(one, counting, { name: 'charge' })).rejects.toThrow(/^The body of the request was read before .* Give dedup\.handle the unread request/);
  expect(runs).toBe(0);
  const put = new Request('https://shop.example/charges', { method: 'PUT', body: '{}' });
  await put.text();
  expect((await handle(put, counting, { name: 'charge' })).status).toBe(200);
});

it.each([
  [{ id: 'ch_1' }, 'returned an object; a Response was expected. Return one, as in return Response.json('],
  [null, 'returned null; a Response was expected.'],
  ['done', 'returned "done"; a Response was expected.'],
])('a handler that returns no Response but %o is a failed one, and its error says so', async (returned, message) => {
  const heard: unknown[] = [];
  const { handle } = createDedup({ ...whole, store: memoryDedupStore(), on: { failed: error => void heard.push(error) } });
  const handler = (): Response => returned as unknown as Response;
  const response = await handle(request(), handler, { name: 'charge' });
  expect([response.status, heard.length, String(heard[0])]).toEqual([500, 1, expect.stringContaining(`The handler of "charge" ${message}`)]);
  await expect(handle(new Request('https://shop.example/charges'), handler, { name: 'charge' })).rejects.toThrow(message);
});

it('a handler may return the Response of another implementation of fetch', async () => {
  const { handle } = createDedup({ ...whole, store: memoryDedupStore() });
  const foreign = new Proxy(done(), { get: (target, name) => { const value = Reflect.get(target, name) as unknown; return typeof value === 'function' ? value.bind(target) as unknown : value; }, getPrototypeOf: () => Object.prototype });
  expect(foreign).not.toBeInstanceOf(Response);
  expect((await handle(request(), () => foreign, { name: 'charge' })).status).toBe(200);
});
