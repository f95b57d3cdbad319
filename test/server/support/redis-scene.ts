import { spawnSync } from 'node:child_process';
import { createClient } from 'redis';
import { beforeEach, onTestFinished } from 'vitest';
import { connectNodeRedis, dropAll, freshPrefix, REDIS_URL, type Connect, type TestClient } from './redis.js';
import { startRedisProxy, type RedisProxy } from './redis-proxy.js';
import { startRedis, type TestServer } from './redis-server.js';

const answers = async (): Promise<boolean> => {
  const client = createClient({ url: REDIS_URL, socket: { reconnectStrategy: false } });
  client.on('error', () => {});
  try {
    await client.connect();
    client.destroy();
    return true;
  } catch {
    return false;
  }
};

/** Skips the tests of a file where there is no Redis. What they need they open by themselves, after this. */
export const needRedis = async (): Promise<void> => {
  const isUp = await answers();
  beforeEach(context => context.skip(!isUp, `no Redis answers at ${REDIS_URL}; start one, or name another with SAMEKEY_REDIS`));
};

/** Skips the tests of a file where Redis is not installed. */
export const needRedisServer = (): void => {
  const isInstalled = spawnSync('redis-server', ['--version']).status === 0;
  beforeEach(context => context.skip(!isInstalled, 'redis-server is not installed; install it to run tests that stop and kill one'));
};

/** A client that is closed with its test. */
export const openClient = async (connect: Connect = connectNodeRedis, url?: string): Promise<TestClient> => {
  const client = await connect(url);
  onTestFinished(() => client.close());
  return client;
};

/** A prefix whose keys are deleted with their test. */
export const openPrefix = (): string => {
  const prefix = freshPrefix();
  onTestFinished(async () => {
    const client = await connectNodeRedis();
    await dropAll(client, prefix);
    await client.close();
  });
  return prefix;
};

/** A server that ends with its test. */
export const openServer = async (flags: readonly string[] = [], port?: number): Promise<TestServer> => {
  const server = await startRedis(flags, port);
  onTestFinished(() => server.dispose());
  return server;
};

export const openProxy = async (targetPort: number): Promise<RedisProxy> => {
  const proxy = await startRedisProxy(targetPort);
  onTestFinished(() => proxy.close());
  return proxy;
};
