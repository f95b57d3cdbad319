import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { fromIoredis, fromNodeRedisCluster, redisDedupStore, type RedisConnection } from '../../src/server/stores/redis.js';
import { answerOf, claimOf, completed, win } from '../../src/testing/dedup/subject.js';
import { bePatient } from '../support/patience.js';
import { freshPrefix } from './support/redis.js';
import { needRedisServer, openClient, openServer } from './support/redis-scene.js';
import { freePort, type TestServer } from './support/redis-server.js';

bePatient();
needRedisServer();

const SLOTS = 16_384;
const MASTERS = 3;

/** Three masters without replicas, each with a third of the slots. */
const openCluster = async (): Promise<TestServer[]> => {
  // The usual bus port, 10 000 above the other, may be no port at all.
  const buses = await Promise.all(Array.from({ length: MASTERS }, freePort));
  const servers = await Promise.all(buses.map(bus => openServer(['--cluster-enabled', 'yes', '--cluster-port', String(bus)])));
  const clients = await Promise.all(servers.map(({ url }) => openClient(undefined, url)));
  for (const [index, { send }] of clients.entries()) {
    await send('CLUSTER', 'ADDSLOTSRANGE', Math.ceil((index * SLOTS) / MASTERS), Math.ceil(((index + 1) * SLOTS) / MASTERS) - 1);
    await send('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  }
  for (const [index, { port }] of servers.entries()) await clients[0]?.send('CLUSTER', 'MEET', '127.0.0.1', port, buses[index] ?? 0);
  const infos = (): Promise<string[]> => Promise.all(clients.map(async ({ send }) => String(await send('CLUSTER', 'INFO'))));
  const isWhole = (info: string): boolean => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${MASTERS}`);
  await vi.waitUntil(async () => (await infos()).every(isWhole), { timeout: 20_000 });
  return servers;
};

interface ClusterClient {
  readonly connection: RedisConnection;
  close(): void;
}

const CLUSTER_CLIENTS: Record<string, (servers: readonly TestServer[]) => Promise<ClusterClient>> = {
  async 'node-redis'([first]) {
    const cluster = createCluster({ rootNodes: [{ url: first?.url ?? '' }] });
    cluster.on('error', () => {});
    await cluster.connect();
    return { connection: fromNodeRedisCluster(cluster), close: () => cluster.destroy() };
  },
  async ioredis([first]) {
    const cluster = new Cluster([{ host: '127.0.0.1', port: first?.port ?? 0 }], { lazyConnect: true });
    await cluster.connect();
    return { connection: fromIoredis(cluster), close: () => cluster.disconnect() };
  },
};

describe.each(Object.entries(CLUSTER_CLIENTS))('a cluster, over %s', (_name, connect) => {
  let client: ClusterClient;
  beforeEach(async () => {
    client = await connect(await openCluster());
    onTestFinished(() => client.close());
  });

  /** Names of keys, node by node. */
  const namesOn = async (prefix: string): Promise<string[][]> =>
    Promise.all((await client.connection.nodes()).map(async node => (await node.send(['KEYS', `${prefix}*`])) as string[]));

  test('keeps the keys on all its nodes, whatever callers put in braces, runs all scripts there, and is purged whole', async () => {
    const prefix = freshPrefix();
    const store = redisDedupStore(client.connection, { prefix });
    const keys = Array.from({ length: 30 }, (_, index) => `{same}${index}`);
    const holds = await Promise.all(keys.map(key => win(store, 'a', { key })));
    for (const hold of holds) {
      expect(await store.renew(hold, 30_000, true)).toBe(true);
      expect(await store.settle(hold, completed())).toBe(true);
      expect(await store.claim(claimOf('b', { key: hold.key }))).toMatchObject({ kind: 'completed' });
    }
    const spread = await namesOn(prefix);
    expect(spread.flat()).toHaveLength(30);
    expect(spread.filter(names => names.length > 0)).toHaveLength(MASTERS);
    await Promise.all(keys.map(async key => store.settle(await win(store, 'a', { key: `old-${key}` }), completed(answerOf(), 0))));
    expect([(await store.purge({ limit: 20 })).deleted, (await store.purge()).deleted]).toEqual([20, 10]);
    expect((await namesOn(prefix)).flat().sort()).toEqual(spread.flat().sort());
  });

  test('C66: is warned of once when nodes of it evict', async () => {
    const store = redisDedupStore(client.connection, { prefix: freshPrefix() });
    expect(await store.check()).toEqual([]);
    for (const node of (await client.connection.nodes()).slice(1)) await node.send(['CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru']);
    expect(await store.check()).toEqual([expect.stringContaining('"volatile-lru"')]);
  });
});
