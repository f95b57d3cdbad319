import { Redis } from 'ioredis';
import { createClient, createClientPool, RESP_TYPES } from 'redis';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ClaimResult } from '../../src/server/record.js';
import { fromIoredis, fromNodeRedis, redisDedupStore, type RedisConnection, type RedisDedupStore, type RedisDedupStoreOptions } from '../../src/server/stores/redis.js';
import { answerOf, claimOf, completed, DAY, holdOf, LEASE, released, win } from '../../src/testing/dedup/subject.js';
import { bePatient } from '../support/patience.js';
import { age, dropAll, REDIS_URL, type TestClient } from './support/redis.js';
import { needRedis, openClient, openPrefix } from './support/redis-scene.js';

bePatient();
await needRedis();

const ref = { scope: 'shop', key: 'k1' };
const HOUR = 3_600_000;
const DOUBT_TTL = 30 * DAY;

let client: TestClient;
let prefix: string;
beforeEach(async () => {
  client = await openClient();
  prefix = openPrefix();
});

const storeOf = (options: RedisDedupStoreOptions = {}): RedisDedupStore => redisDedupStore(client.connection, { prefix, ...options });
const namesOf = async (): Promise<string[]> => (await client.send('KEYS', `${prefix}*`)) as string[];
const onlyName = async (): Promise<string> => {
  const names = await namesOf();
  expect(names).toHaveLength(1);
  return names[0] as string;
};
/** ms; -1: none. */
const ttl = async (): Promise<number> => (await client.send('PTTL', await onlyName())) as number;

/** What Redis executed meanwhile for the keys of this test, scripts' commands too, in its own words. */
const logOf = async (work: () => Promise<unknown>): Promise<string[]> => {
  const monitor = createClient({ url: REDIS_URL });
  const lines: string[] = [];
  await monitor.connect();
  await monitor.monitor(line => lines.push(line));
  await work();
  await client.send('ECHO', `${prefix}end`);
  await expect.poll(() => lines.some(line => line.includes(`${prefix}end`))).toBe(true);
  monitor.destroy();
  return lines.filter(line => line.includes(`"${prefix}`) && !line.includes(`${prefix}end`));
};
const fromScripts = (log: readonly string[]): string[] => log.filter(line => line.includes(' lua]'));

describe('the first claim', () => {
  test('C64: of two claims one wins, and the other is told what is there', async () => {
    const store = storeOf();
    const hold = await win(store, 'a');
    expect(await store.claim(claimOf('b'))).toMatchObject({ kind: 'in-progress', operationRef: 'ref-a' });
    await store.settle(hold, completed());
    expect(await store.claim(claimOf('b'))).toEqual({ kind: 'completed', answer: answerOf(), operationRef: 'ref-a' });
  });

  test('C64: an error of Redis is an error, never a key that exists', async () => {
    const store = storeOf();
    await win(store, 'a');
    const name = await onlyName();
    await client.send('DEL', name);
    await client.send('RPUSH', name, 'a list');
    await expect(store.claim(claimOf('b'))).rejects.toThrow('WRONGTYPE');
  });

  test('C65: it is one SET … NX PX, and no command after it', async () => {
    const store = storeOf();
    await win(store, 'warm up', { key: 'k0' });
    const log = await logOf(() => win(store, 'a'));
    expect(log.filter(line => !line.includes(' lua]'))).toEqual([expect.stringMatching(/"EVALSHA"/)]);
    expect(fromScripts(log)).toEqual([expect.stringMatching(new RegExp(`"SET" "${prefix}4:shop2:k1" .* "NX" "PX" "${DAY + DOUBT_TTL}"$`))]);
  });

  test('C65: it has a time to live at once, also one below a second', async () => {
    await win(storeOf(), 'a');
    expect(await ttl()).toBeGreaterThan(DAY);
    await dropAll(client, prefix);
    const log = await logOf(() => win(storeOf({ doubtTtl: 0.1 }), 'a', { lease: 0.2, keyRetention: 0.3 }));
    expect(fromScripts(log).at(-1)).toMatch(/"PX" "1"$/);
    await win(storeOf({ doubtTtl: 0 }), 'b', { key: 'k2', lease: 400, keyRetention: 900 });
    const left = (await client.send('PTTL', `${prefix}4:shop2:k2`)) as number;
    expect(left > 0 && left <= 900).toBe(true);
  });
});

describe('the end of a run', () => {
  test('is one round trip, and so is a renewal', async () => {
    const store = storeOf();
    const hold = await win(store, 'a');
    await store.renew(hold, LEASE, false);
    await store.settle(await win(store, 'b', { key: 'k2' }), completed());
    const log = await logOf(async () => {
      await store.renew(hold, LEASE, true);
      await store.settle(hold, completed());
    });
    expect(log.filter(line => !line.includes(' lua]'))).toEqual([expect.stringMatching(/"EVALSHA"/), expect.stringMatching(/"EVALSHA"/)]);
    expect((await store.get(ref))?.effectStarted).toBe(true);
  });

  test('gives the row the life of its key and an hour, and a renewal keeps the room for doubt', async () => {
    const store = storeOf();
    const hold = await win(store, 'a');
    await store.renew(hold, 2 * DAY, false);
    const renewed = await ttl();
    expect(renewed > DAY + DOUBT_TTL && renewed <= 2 * DAY + DOUBT_TTL).toBe(true);
    await store.settle(hold, completed());
    expect(await ttl()).toBeLessThanOrEqual(DAY + HOUR);
    expect(await ttl()).toBeGreaterThan(DAY);
    await store.settle(await win(store, 'b', { key: 'k2' }), released(true));
    const left = (await client.send('PTTL', `${prefix}4:shop2:k2`)) as number;
    expect(left > DAY && left <= DAY + HOUR).toBe(true);
  });

  test('without an outcome stays until somebody says so', async () => {
    const store = storeOf();
    await store.settle(await win(store, 'a'), { to: 'indeterminate', reason: 'test' });
    expect(await ttl()).toBe(-1);
    await store.resolve(ref, { to: 'retryable', keyRetention: DAY });
    expect(await ttl()).toBeGreaterThan(DAY);
  });

  test('that never came is kept past the life of its key, found by a purge, and then stays', async () => {
    const store = storeOf({ doubtTtl: 2 * HOUR });
    await win(store, 'a', { keyRetention: HOUR });
    await age(client, prefix, 2 * HOUR);
    expect(await store.purge()).toMatchObject({ doubted: 1, indeterminate: 1 });
    expect(await ttl()).toBe(-1);
  });

  test('that nobody asked for until doubtTtl was over is forgotten', async () => {
    await win(storeOf({ doubtTtl: HOUR }), 'a', { keyRetention: HOUR });
    await age(client, prefix, 2 * HOUR);
    expect(await namesOf()).toEqual([]);
  });
});

describe('a key', () => {
  test('refused for its age is refused as long as its row outlives it', async () => {
    const store = storeOf({ expiredTtl: DAY });
    await store.settle(await win(store, 'a'), completed());
    await age(client, prefix, DAY + HOUR);
    expect((await store.claim(claimOf('b', { onExpired: 'refuse' }))).kind).toBe('key-expired');
    await age(client, prefix, DAY);
    expect((await store.claim(claimOf('b', { onExpired: 'refuse' }))).kind).toBe('won');
  });

  test('that says itself how old it is is refused without a row', async () => {
    const store = storeOf();
    const old = claimOf('a', { onExpired: 'refuse', keyMadeAt: 0 });
    expect((await store.claim(old)).kind).toBe('key-expired');
    expect((await store.claim({ ...old, keyMadeAt: Date.now() })).kind).toBe('won');
    expect(await ttl()).toBeGreaterThan(DAY);
  });

  test('without an end to its life is kept, and its run can be renewed and ended', async () => {
    const store = storeOf({ doubtTtl: Infinity });
    const claim = claimOf('a', { keyRetention: Infinity, lease: Infinity });
    const hold = holdOf(claim, await store.claim(claim));
    expect(await store.renew(hold, Infinity, false)).toBe(true);
    expect(await store.settle(hold, completed(answerOf(), Infinity, Infinity))).toBe(true);
    expect((await store.claim(claimOf('b'))).kind).toBe('completed');
    expect(await ttl()).toBeGreaterThan(1000 * 365 * DAY);
  });

  test('has no hash tag in its name, and halves of surrogate pairs stay apart', async () => {
    const store = storeOf();
    for (const scope of ['{a}', '%007ba}', '\ud800', '\ud801', '\ufffd']) {
      expect((await store.claim(claimOf('a', { scope, key: '{b}' }))).kind).toBe('won');
      expect((await store.get({ scope, key: '{b}' }))?.scope).toBe(scope);
    }
    const names = await namesOf();
    expect(names).toHaveLength(5);
    expect(names.filter(name => /[{}]/.test(name))).toEqual([]);
  });

  test('under a longer prefix is not purged along', async () => {
    const store = storeOf();
    const other = storeOf({ prefix: `${prefix}other:` });
    for (const one of [store, other]) await one.settle(await win(one, 'a', { keyRetention: 1 }), completed(answerOf(), 1));
    await age(client, prefix, HOUR / 2);
    expect([(await store.purge()).deleted, (await other.purge()).deleted]).toEqual([1, 1]);
  });

  test('of another program is named, not overwritten', async () => {
    const store = storeOf();
    await client.send('SET', `${prefix}4:shop2:k1`, 'mine');
    const name = `The Redis key "${prefix}4:shop2:k1" holds no dedup record`;
    await expect(store.claim(claimOf('a'))).rejects.toThrow(name);
    await expect(store.purge()).rejects.toThrow(name);
    expect(await client.send('GET', `${prefix}4:shop2:k1`)).toBe('mine');
  });
});

describe('a purge', () => {
  test('goes on where the last one stopped, over more keys than a page', async () => {
    const store = storeOf();
    const keys = Array.from({ length: 350 }, (_, index) => `k${index}`);
    await Promise.all(keys.map(async key => store.settle(await win(store, 'a', { key, keyRetention: 1 }), completed(answerOf(), 1))));
    await age(client, prefix, HOUR / 2);
    const reports = [await store.purge({ limit: 120 }), await store.purge({ limit: 120 }), await store.purge({ limit: 120 })];
    expect(reports.map(({ deleted, more }) => [deleted, more])).toEqual([[120, true], [120, true], [110, false]]);
    expect(await namesOf()).toEqual([]);
  });

  test('reads no bodies', async () => {
    const store = storeOf();
    await store.settle(await win(store, 'a'), completed(answerOf({ body: new TextEncoder().encode('a body of some length') })));
    const replies: string[] = [];
    const { send, nodes } = client.connection;
    const spied = redisDedupStore({ nodes, send: async (...sent) => {
      const reply = await send(...sent);
      replies.push(JSON.stringify(reply));
      return reply;
    } }, { prefix });
    await spied.purge();
    const body = Buffer.from('a body of some length').toString('base64');
    expect([replies.some(reply => reply.includes('ref-a')), replies.some(reply => reply.includes(body))]).toEqual([true, false]);
  });
});

describe('a client that is set up in its own way', () => {
  const BODY = new Uint8Array([0xff, 0xfe, 0x00, 0x80]);
  const replayOver = async (connection: RedisConnection): Promise<ClaimResult> => {
    const store = redisDedupStore(connection, { prefix });
    await store.settle(await win(store, 'a'), completed(answerOf({ body: BODY })));
    await store.purge();
    return store.claim(claimOf('b'));
  };
  const replay = { kind: 'completed', answer: answerOf({ body: BODY }), operationRef: 'ref-a' };

  test('to give Buffers, in the old protocol', async () => {
    const own = createClient({ url: REDIS_URL, RESP: 2, commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } });
    onTestFinished(() => own.destroy());
    await own.connect();
    expect(await replayOver(fromNodeRedis(own))).toEqual(replay);
  });

  test('to be a pool', async () => {
    const own = createClientPool({ url: REDIS_URL });
    onTestFinished(() => own.destroy());
    await own.connect();
    expect(await replayOver(fromNodeRedis(own))).toEqual(replay);
  });

  test('to give numbers as texts', async () => {
    const own = new Redis(REDIS_URL, { stringNumbers: true });
    onTestFinished(() => own.disconnect());
    expect(await replayOver(fromIoredis(own))).toEqual(replay);
  });
});

describe('what cannot work', () => {
  test.each(['', 'app1'])('the prefix "%s" is refused', bad => {
    expect(() => storeOf({ prefix: bad })).toThrow(TypeError);
  });

  test('an ioredis client with a prefix of its own is refused', () => {
    const never = { call: () => Promise.reject(new Error('not to be called')), options: { keyPrefix: 'app:' } };
    expect(() => fromIoredis(never)).toThrow('has the keyPrefix "app:"');
  });
});
