import { beforeEach, describe, expect, test } from 'vitest';
import { redisDedupStore } from '../../src/server/stores/redis.js';
import { claimOf, win } from '../../src/testing/dedup/subject.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { endpointOf, hasty } from './support/endpoint.js';
import { CLIENTS, connectNodeRedis, type TestClient } from './support/redis.js';
import { needRedisServer, openClient, openServer } from './support/redis-scene.js';
import type { TestServer } from './support/redis-server.js';

bePatient();
needRedisServer();

let server: TestServer;
let client: TestClient;
beforeEach(async () => {
  server = await openServer(['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru']);
  client = await openClient(undefined, server.url);
});

describe('C66: a Redis that may evict keys', () => {
  test.each(Object.entries(CLIENTS))('is told of, with what to do, over %s', async (_name, connect) => {
    const { connection } = await openClient(connect, server.url);
    const [warning, ...more] = await redisDedupStore(connection).check();
    expect(warning).toMatch(/maxmemory-policy "allkeys-lru".*Set "maxmemory-policy noeviction"/);
    expect(more).toEqual([]);
    await client.send('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    expect(await redisDedupStore(connection).check()).toEqual([]);
  });

  test('is warned of once, at the first use, which it does not hold up', async () => {
    const warnings: string[] = [];
    const store = redisDedupStore(client.connection, { onWarning: warning => warnings.push(warning) });
    await win(store, 'a');
    await win(store, 'b', { key: 'k2' });
    await expect.poll(() => warnings).toHaveLength(1);
    await win(store, 'c', { key: 'k3' });
    await client.send('PING');
    expect(warnings).toHaveLength(1);
  });

  test('cannot be told from another where INFO is forbidden, and that is said', async () => {
    await client.send('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '+@all', '-info');
    const app = await openClient(connectNodeRedis, server.url.replace('//', '//app:secret@'));
    expect(await redisDedupStore(app.connection).check()).toEqual([expect.stringContaining('could not be read (INFO memory)')]);
  });
});

describe('a Redis that is full and evicts nothing', () => {
  test('C64, 49: answers claims with an error, and nothing runs', async () => {
    await client.send('CONFIG', 'SET', 'maxmemory-policy', 'noeviction', 'maxmemory', 1);
    const store = redisDedupStore(client.connection);
    await expect(store.claim(claimOf('a'))).rejects.toThrow(/OOM/);
    const clock = manualClock();
    const endpoint = endpointOf({ store, clock }, undefined, { clock: hasty(clock) });
    expect([(await endpoint.send({ key: 'k' })).status, endpoint.runs]).toEqual([503, 0]);
  });
});
