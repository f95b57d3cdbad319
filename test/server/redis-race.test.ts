import { beforeEach, describe, expect, test } from 'vitest';
import { redisDedupStore } from '../../src/server/stores/redis.js';
import { startScript, type Spoken } from '../keystore/support/processes.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { codeOf, endpointOf, gate, isReplay, LEASE, type Endpoint } from './support/endpoint.js';
import { age, CLIENTS, type TestClient } from './support/redis.js';
import { needRedis, openClient, openPrefix } from './support/redis-scene.js';

bePatient();
await needRedis();

/** Enough for their commands to mix on the server. */
const CONNECTIONS = 4;
const script = (name: string): string => new URL(`./support/${name}.ts`, import.meta.url).pathname;

let client: TestClient;
let prefix: string;
beforeEach(async () => {
  client = await openClient();
  prefix = openPrefix();
});

type Work = Parameters<typeof endpointOf>[1];

/** Servers with a connection each, of both clients in turn. */
const openServers = (work?: Work, options?: Parameters<typeof endpointOf>[2]): Promise<Endpoint[]> =>
  Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, index) => {
      const { connection } = await openClient(Object.values(CLIENTS)[index % 2]);
      return endpointOf({ store: redisDedupStore(connection, { prefix }), clock: manualClock() }, work, options);
    }),
  );

const effects = async (): Promise<number> => Number(await client.send('GET', `${prefix}effects`));

describe('28: of many identical requests at once, over several connections', () => {
  test.each([50, 200])('of %i exactly one runs, the others are told so or get its answer', async count => {
    const servers = await openServers(async () => {
      await client.send('INCR', `${prefix}effects`);
      return new Response('done', { status: 201 });
    });
    const responses = await Promise.all(Array.from({ length: count }, (_, index) => (servers[index % CONNECTIONS] as Endpoint).send({ key: 'k' })));
    expect(await effects()).toBe(1);
    const executed = responses.filter(response => response.status === 201 && !isReplay(response));
    const told = responses.filter(response => response.status === 409 || isReplay(response));
    expect([executed.length, told.length]).toEqual([1, count - 1]);
  });

  test('31: of 200 after the first worker died exactly one takes over', async () => {
    const store = redisDedupStore(client.connection, { prefix });
    const dead = endpointOf({ store: { ...store, settle: async () => new Promise<never>(() => {}) }, clock: manualClock() });
    void dead.send({ key: 'k' });
    await expect.poll(() => dead.runs).toBe(1);
    await age(client, prefix, LEASE + 1);
    const servers = await openServers(undefined, { effects: 'idempotent' });
    const responses = await Promise.all(Array.from({ length: 200 }, (_, index) => (servers[index % CONNECTIONS] as Endpoint).send({ key: 'k' })));
    expect(servers.reduce((sum, { runs }) => sum + runs, 0)).toBe(1);
    expect(responses.filter(({ status }) => status !== 201 && status !== 409)).toEqual([]);
  });
});

test('32: 200 other keys do not wait for one whose handler goes on', async () => {
  const { opened, open } = gate();
  const servers = await openServers(async (_request, { key }) => (key === 'slow' ? opened.then(() => new Response('late')) : new Response('now')));
  const slow = (servers[0] as Endpoint).send({ key: 'slow' });
  await expect.poll(() => servers[0]?.runs).toBe(1);
  const responses = await Promise.all(Array.from({ length: 200 }, (_, index) => (servers[index % CONNECTIONS] as Endpoint).send({ key: `k${index}` })));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  open();
  expect(await (await slow).text()).toBe('late');
});

test('28: of four processes with 50 identical requests each exactly one request runs', async () => {
  const racers = Array.from({ length: 4 }, (_, index) => startScript(script('redis-racer'), [Object.keys(CLIENTS)[index % 2] as string, prefix, '50']));
  await Promise.all(racers.map(racer => racer.line('ready')));
  for (const { child } of racers) child.stdin?.write('go\n');
  const counts = await Promise.all(racers.map(async racer => JSON.parse((await racer.line('statuses ')).slice('statuses '.length)) as Record<string, number>));
  expect(await effects()).toBe(1);
  const total = (status: number): number => counts.reduce((sum, one) => sum + (one[status] ?? 0), 0);
  expect(total(201)).toBeGreaterThanOrEqual(1);
  expect(total(201) + total(409)).toBe(200);
});

describe('a worker that is killed', () => {
  const dieAt = async (point: string, how: string): Promise<void> => {
    const worker: Spoken = startScript(script('redis-mortal'), [prefix, how, point]);
    await worker.line(`at ${point}`);
    worker.child.kill('SIGKILL');
    await worker.ended;
  };
  const retry = async (how: 'external' | 'marked'): Promise<[number, string]> => {
    const endpoint = endpointOf({ store: redisDedupStore(client.connection, { prefix }), clock: manualClock() }, async (_request, context) => {
      await context.effectStarted();
      await client.send('INCR', `${prefix}effects`);
      return Response.json({ paid: true }, { status: 201 });
    }, { effects: how });
    const response = await endpoint.send({ key: 'k' });
    return [response.status, isReplay(response) ? 'replay' : response.ok ? 'run' : await codeOf(response)];
  };

  test.each([
    ['claimed', 'external', [409, 'idempotency_indeterminate'], 0],
    ['claimed', 'marked', [201, 'run'], 1],
    ['effect', 'external', [409, 'idempotency_indeterminate'], 1],
    ['effect', 'marked', [409, 'idempotency_indeterminate'], 1],
    ['recording', 'marked', [409, 'idempotency_indeterminate'], 1],
    ['recorded', 'external', [201, 'replay'], 1],
  ] as const)('34, 35: at "%s", with %s effects, leaves %j to the retry after its lease, and %i effects', async (point, how, answer, count) => {
    await dieAt(point, how);
    if (point !== 'recorded') expect(await retry(how)).toEqual([409, 'idempotency_in_progress']);
    await age(client, prefix, LEASE + 1);
    expect(await retry(how)).toEqual(answer);
    expect(await retry(how)).toEqual(answer[1] === 'run' ? [201, 'replay'] : answer);
    expect(await effects()).toBe(count);
  });
});
