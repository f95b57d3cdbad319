import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createClient, type Client } from '../../src/client.js';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { KeyStore } from '../../src/keystore/keystore.js';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import type { ClientOptions } from '../../src/options.js';
import { toNodeListener } from '../../src/server/adapters/node.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { ORDERS_DATABASES, ordersOf, serveOrders, URL_OF_ORDERS } from '../server/conditional/orders.js';
import { temporaryDirectory } from '../keystore/support/processes.js';
import { manualClock } from '../support/manual-clock.js';
import { openOrSkip } from '../support/open-for-all.js';
import { startPaymentServer, type Fault, type PaymentServer } from '../support/payment-server.js';
import { byDesignChecks } from './by-design-checks.js';
import { DAY_MS, engineChecks, type Door, type Stage } from './engine-checks.js';
import { SQL_STAGES } from './sql-stages.js';

/** Serves a handler on loopback and sends to it what was meant for the world. */
const socketDoor = async (handler: (request: Request) => Promise<Response>): Promise<Door> => {
  const server = createServer(toNodeListener(handler));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return request => fetch(new Request(`http://127.0.0.1:${port}${new URL(request.url).pathname}`, request));
};

/** Only catches hangs, on a busy machine. */
const PATIENCE_MS = 60_000;

describe('the dedup engine behind two HTTP servers on one memory store', { timeout: PATIENCE_MS }, () => {
  test.each(engineChecks.map(check => [check.name, check] as const))('%s', async (_, check) => {
    const clock = manualClock();
    const store = memoryDedupStore({ clock });
    await check.run({ stores: [store, store], pass: clock.advance, door: socketDoor } satisfies Stage);
  });
});

for (const [name, open] of SQL_STAGES) {
  describe(`the dedup engine behind two HTTP servers on ${name}`, { timeout: PATIENCE_MS }, () => {
    test.for(engineChecks.map(check => [check.name, check] as const))('%s', async ([, check], context) => check.run({ ...(await openOrSkip(context, open())), door: socketDoor }));
  });
}

describe.each(ORDERS_DATABASES)('a resource behind an HTTP server on %s', { timeout: PATIENCE_MS }, (_name, open) => {
  test.for(byDesignChecks.map(check => [check.name, check] as const))('%s', async ([, check], context) => {
    const opened = await openOrSkip(context, open());
    onTestFinished(() => opened.close());
    const orders = ordersOf(opened);
    const door = await socketDoor(serveOrders(orders));
    await check.run({ door, url: `${URL_OF_ORDERS}1`, database: opened.database });
  });
});

interface KeyStores {
  readonly name: string;
  /** What makes stores that see the same heads. */
  share(): () => KeyStore;
}

const KEY_STORES: readonly KeyStores[] = [
  {
    name: 'memory key store',
    share: () => {
      const backing = memoryBacking();
      return () => memoryKeyStore({ backing });
    },
  },
  {
    name: 'file key store',
    share: () => {
      const directory = temporaryDirectory();
      return () => fileKeyStore(directory);
    },
  },
];

const openServer = async (...faults: readonly Fault[]): Promise<PaymentServer> => {
  const server = await startPaymentServer();
  onTestFinished(() => server.close());
  server.script(...faults);
  return server;
};

const openClient = ({ origin }: PaymentServer, keystore: KeyStore, options: ClientOptions = {}): Client => {
  const retry = { delay: () => 0 };
  const api = createClient({ prefix: origin, scope: 'acct_1', keyStrategy: 'derived', keystore, retry, ...options });
  onTestFinished(() => api.close());
  return api;
};

const CHARGE = { operation: 'order:42:charge', json: { order: 42, amount: 4200 } };

const charge = async (api: Client): Promise<string> => (await api.post('charges', CHARGE)).text();

const codeOf = (promise: PromiseLike<unknown>): Promise<unknown> => Promise.resolve(promise).then(() => 'no error', (error: { code?: unknown }) => error.code ?? error);

describe.each(KEY_STORES)('the client on the $name', { timeout: PATIENCE_MS }, ({ share }) => {
  test('check 1: the same call twice has one effect and the same bytes, also in a client that was started anew or has lost its store', async () => {
    const open = share();
    const server = await openServer();
    const first = await charge(openClient(server, open()));
    expect(await charge(openClient(server, open()))).toBe(first);
    expect(server.requests).toHaveLength(1);
    expect(await charge(openClient(server, share()()))).toBe(first);
    expect(server.requests).toHaveLength(2);
    expect(server.effects).toHaveLength(1);
  });

  test('check 2: parallel calls of one name in two clients on one store have one effect, and all learn its answer', async () => {
    const open = share();
    const server = await openServer({ kind: 'delay', ms: 20 });
    const clients = [openClient(server, open()), openClient(server, open())];
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => charge(clients[at % clients.length] as Client)));
    expect(new Set(answers).size).toBe(1);
    expect([server.requests.length, server.effects.length]).toEqual([1, 1]);
  });

  test('check 3: another body under the same name is refused before it is sent', async () => {
    const server = await openServer();
    const api = openClient(server, share()());
    await charge(api);
    expect(await codeOf(api.post('charges', { ...CHARGE, json: { order: 42, amount: 1 } }))).toBe('OPERATION_MISMATCH');
    expect([server.requests.length, server.effects.length]).toEqual([1, 1]);
  });

  test('check 3: another body under the same key, where the first is not known here, is refused by the server and ends in doubt', async () => {
    const server = await openServer();
    await charge(openClient(server, share()()));
    const api = openClient(server, share()());
    expect(await codeOf(api.post('charges', { ...CHARGE, json: { order: 42, amount: 1 } }))).toBe('KEY_REUSED');
    expect(await api.operations.get(CHARGE.operation)).toMatchObject({ state: 'in_doubt' });
    expect(server.effects).toHaveLength(1);
  });

  test.each([{ operation: 'named' }, { operation: undefined }])('check 4: one key is made before the first send and goes out with every attempt (operation: $operation)', async ({ operation }) => {
    const faults: readonly Fault[] = [{ kind: 'lose-request' }, { kind: 'status', status: 503 }, { kind: 'lose-response' }, { kind: 'cut-body' }, { kind: 'status', status: 429 }];
    const server = await openServer(...faults);
    const made: string[] = [];
    const newKey = (): string => `key-${made.push('made')}`;
    const api = openClient(server, share()(), { newKey, keyStrategy: 'random' });
    await api.post('charges', { ...(operation && { operation }), json: { order: 1, amount: 1 } });
    expect(server.requests.map(({ key }) => key)).toEqual(Array.from({ length: faults.length + 1 }, () => 'key-1'));
    expect(made).toHaveLength(1);
    expect(server.effects).toHaveLength(1);
  });

  test('check 8: answers are dropped first, names stay as tombstones for their time, and then nothing is left', async () => {
    const server = await openServer();
    let time = Date.UTC(2030, 0, 1);
    const api = openClient(server, share()(), { clock: { now: () => time }, retention: DAY_MS, nameRetention: 10 * DAY_MS, keyWindow: 2 * DAY_MS });
    const states = async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const { name, state, answer } of api.operations.list()) found.push(`${name ?? 'anonymous'} ${state} ${answer ? 'with' : 'without'} answer`);
      return found.toSorted();
    };
    const tidyAfter = async (ms: number): Promise<readonly string[]> => {
      time += ms;
      await api.operations.resume();
      return states();
    };
    const first = await charge(api);
    await api.post('charges', { json: { order: 43, amount: 1 } });
    expect(await tidyAfter(DAY_MS - 1)).toEqual(['anonymous succeeded without answer', 'order:42:charge succeeded with answer']);
    expect(await tidyAfter(2)).toEqual(['order:42:charge succeeded without answer']);
    expect(await codeOf(api.post('charges', CHARGE))).toBe('ANSWER_OMITTED');
    expect(await tidyAfter(9 * DAY_MS - 2)).toHaveLength(1);
    expect(await tidyAfter(2)).toEqual([]);
    // What was forgotten here is a fresh call, with the key it always had: only the server can still tell.
    expect(await charge(api)).toBe(first);
    expect(new Set(server.requests.map(({ key }) => key)).size).toBe(2);
  });

  test('check 8: work that is not done is never purged, however old it is', async () => {
    const server = await openServer({ kind: 'lose-response' });
    let time = Date.UTC(2030, 0, 1);
    const api = openClient(server, share()(), { clock: { now: () => time }, retry: { limit: 0 }, retention: 1, nameRetention: 1 });
    expect(await codeOf(api.post('charges', CHARGE))).toBe('OPERATION_PENDING');
    time += 1_000 * DAY_MS;
    await api.operations.resume();
    expect(await api.operations.get(CHARGE.operation)).toMatchObject({ state: 'in_doubt', reason: 'key-window' });
  });
});
