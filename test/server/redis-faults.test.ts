import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { redisDedupStore, type RedisDedupStore } from '../../src/server/stores/redis.js';
import { claimOf, completed, win } from '../../src/testing/dedup/subject.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { codeOf, endpointOf, gate, hasty, isReplay, type Endpoint } from './support/endpoint.js';
import { CLIENTS, connectNodeRedis, type Connect, type TestClient } from './support/redis.js';
import type { RedisProxy } from './support/redis-proxy.js';
import { needRedisServer, openClient, openProxy, openServer } from './support/redis-scene.js';
import type { TestServer } from './support/redis-server.js';

bePatient();
needRedisServer();

/** What is to be given up on must not take a test long; a healthy Redis answers in a fraction of it. */
const SHORT_MS = 500;
const ref = { scope: '4:acme6:charge', key: 'k' };

let server: TestServer;
let proxy: RedisProxy;
beforeEach(async () => {
  server = await openServer();
  proxy = await openProxy(server.port);
});

const direct = (connect: Connect = connectNodeRedis): Promise<TestClient> => openClient(connect, server.url);
const throughProxy = (connect: Connect = connectNodeRedis): Promise<TestClient> => openClient(connect, proxy.url);

const storeOf = ({ connection }: TestClient, timeout?: number): RedisDedupStore => redisDedupStore(connection, { timeout });

type Options = Parameters<typeof endpointOf>[2];
const endpointOn = (store: RedisDedupStore, work?: Parameters<typeof endpointOf>[1], options: Options = {}): Endpoint =>
  endpointOf({ store, clock: manualClock() }, work, { clock: hasty(systemClock), ...options });

describe.each(Object.entries(CLIENTS))('over %s', (_name, connect) => {
  test('6, 41: a claim whose acknowledgement got lost with its connection goes on as the owner', async () => {
    const store = storeOf(await throughProxy(connect));
    const endpoint = endpointOn(store);
    await endpoint.send({ key: 'warm-up' });
    proxy.loseNextReply();
    expect([(await endpoint.send({ key: 'k' })).status, endpoint.runs]).toEqual([201, 2]);
    expect(await store.get(ref)).toMatchObject({ state: 'completed', fence: 1, attempts: 1 });
  });

  test('42: an answer whose acknowledgement got lost with its connection is stored once, and replayed', async () => {
    const store = storeOf(await throughProxy(connect));
    const endpoint = endpointOn(store, () => {
      proxy.loseNextReply();
      return new Response('done');
    });
    const first = await endpoint.send({ key: 'k' });
    expect([first.headers.get('idempotency-status'), await first.text()]).toEqual(['stored', 'done']);
    expect([isReplay(await endpoint.send({ key: 'k' })), endpoint.runs]).toEqual([true, 1]);
  });

  test('49: a Redis that is gone lets nothing run, though the client would wait for it; when it is back all goes on', async () => {
    const store = storeOf(await direct(connect), SHORT_MS);
    const endpoint = endpointOn(store);
    await endpoint.send({ key: 'before' });
    await server.kill();
    const refused = await endpoint.send({ key: 'k' });
    expect([refused.status, await codeOf(refused), endpoint.runs]).toEqual([503, 'idempotency_store_unavailable', 1]);
    await openServer([], server.port);
    await expect.poll(async () => (await endpoint.send({ key: 'k' })).status).toBe(201);
    expect(endpoint.runs).toBe(2);
  });

  test('a claim that Redis executes after its caller gave up holds no key', async () => {
    const store = storeOf(await direct(connect), SHORT_MS);
    await win(store, 'a', { key: 'before' });
    server.freeze();
    await expect(store.claim(claimOf('a'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('did not answer within 500 ms') as string });
    await systemClock.sleep(SHORT_MS);
    server.thaw();
    const rival = storeOf(await direct(connect));
    // It comes after the late one, on the same connection.
    await expect.poll(() => store.get({ scope: 'shop', key: 'before' }).then(Boolean, () => false)).toBe(true);
    expect(await rival.claim(claimOf('b'))).toMatchObject({ kind: 'won', fence: 1 });
  });

  test('scripts that Redis forgot are sent again', async () => {
    const client = await direct(connect);
    const store = storeOf(client);
    const hold = await win(store, 'a');
    await client.send('SCRIPT', 'FLUSH');
    expect((await store.claim(claimOf('b'))).kind).toBe('in-progress');
    expect(await store.settle(hold, completed())).toBe(true);
    expect((await store.claim(claimOf('c'))).kind).toBe('completed');
  });
});

describe('a record that Redis loses', () => {
  /** A run that goes on while `lose` happens, and what its client gets. */
  const loseDuringRun = async (store: RedisDedupStore, lose: () => Promise<unknown>): Promise<Response> => {
    const { opened, open: finish } = gate();
    const endpoint = endpointOn(store, async () => opened.then(() => new Response('of the first run')));
    const first = endpoint.send({ key: 'k' });
    await expect.poll(() => endpoint.runs).toBe(1);
    await lose();
    finish();
    return first;
  };

  test('C66: by a flush is not written again by its run, which is answered 409, and a repeat runs', async () => {
    const client = await direct();
    const store = storeOf(client);
    const response = await loseDuringRun(store, () => client.send('FLUSHALL'));
    expect([response.status, await codeOf(response)]).toEqual([409, 'idempotency_in_progress']);
    expect(await store.get(ref)).toBeUndefined();
    const again = endpointOn(store);
    expect([(await again.send({ key: 'k' })).status, again.runs]).toEqual([201, 1]);
  });

  test('by a failover is never written over the record of the repeat that ran since', async () => {
    const replica = await openServer(['--replicaof', '127.0.0.1', String(server.port)]);
    const onReplica = await openClient(connectNodeRedis, replica.url);
    const store = storeOf(await throughProxy());
    await expect.poll(async () => String(await onReplica.send('INFO', 'replication'))).toContain('master_link_status:up');
    const rival = endpointOn(storeOf(onReplica), () => new Response('of the repeat'));
    // The claim does not get there before the primary dies.
    await onReplica.send('REPLICAOF', 'NO', 'ONE');
    const response = await loseDuringRun(store, async () => {
      await server.kill();
      proxy.pointTo(replica.port);
      expect((await rival.send({ key: 'k' })).status).toBe(200);
    });
    expect([await response.text(), isReplay(response)]).toEqual(['of the repeat', true]);
    expect([await (await rival.send({ key: 'k' })).text(), rival.runs]).toEqual(['of the repeat', 1]);
  });

  test('is not lost by a failover to a replica that has it', async () => {
    const replica = await openServer(['--replicaof', '127.0.0.1', String(server.port)]);
    const onReplica = await openClient(connectNodeRedis, replica.url);
    await expect.poll(async () => String(await onReplica.send('INFO', 'replication'))).toContain('master_link_status:up');
    const endpoint = endpointOn(storeOf(await throughProxy()));
    await endpoint.send({ key: 'k' });
    await expect.poll(async () => storeOf(onReplica).get(ref)).toMatchObject({ state: 'completed' });
    await onReplica.send('REPLICAOF', 'NO', 'ONE');
    await server.kill();
    proxy.pointTo(replica.port);
    expect([isReplay(await endpoint.send({ key: 'k' })), endpoint.runs]).toEqual([true, 1]);
  });

  test('C64: a replica, which takes no writes, is an error', async () => {
    const replica = await openServer(['--replicaof', '127.0.0.1', String(server.port)]);
    await expect(storeOf(await openClient(connectNodeRedis, replica.url)).claim(claimOf('a'))).rejects.toThrow(/READONLY/);
  });
});
