import { expect, onTestFinished } from 'vitest';
import { createClient } from '../../../src/index.js';
import { fileKeyStore } from '../../../src/keystore/file.js';
import { startScript, temporaryDirectory, type Spoken } from '../../keystore/support/processes.js';
import { startPaymentServer, type PaymentServer, type RecordedRequest } from '../../support/payment-server.js';
import type { Errand } from './errand.js';

/** One server, one directory, and the shop processes between them. */
export interface Scene {
  readonly server: PaymentServer;
  readonly directory: string;
  shop(errand: Omit<Errand, 'directory' | 'origin'>): Spoken;
}

const script = new URL('./shop.ts', import.meta.url).pathname;

export const openScene = async (): Promise<Scene> => {
  const server = await startPaymentServer();
  onTestFinished(() => server.close());
  const directory = temporaryDirectory();
  return { server, directory, shop: errand => startScript(script, [JSON.stringify({ directory, origin: server.origin, ...errand } satisfies Errand)]) };
};

/** Ends a process as the kernel does when memory is out: it learns nothing of it. */
export const kill = async ({ child, ended }: Spoken): Promise<void> => {
  child.kill('SIGKILL');
  await ended;
};

export const go = ({ child }: Spoken): void => void child.stdin?.write('go\n');

const orderOf = ({ body }: RecordedRequest): unknown => (JSON.parse(body) as { order: unknown }).order;

export const requestsFor = ({ server }: Scene, order: string): readonly RecordedRequest[] => server.requests.filter(request => orderOf(request) === order);

/** What processes said they learned, by order. */
export const learned = (shops: readonly Spoken[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    shops.flatMap(({ lines }) => lines).flatMap(line => {
      const [, order, answer] = /^charged (\S+) (.*)$/.exec(line) ?? [];
      return order === undefined ? [] : [[order, JSON.parse(answer ?? '') as unknown]];
    }),
  );

const statesIn = async ({ directory, server }: Scene): Promise<Record<string, string>> => {
  const api = createClient({ prefix: server.origin, scope: 'acct_1', keystore: fileKeyStore(directory) });
  const states: Record<string, string> = {};
  for await (const { name, state } of api.operations.list()) states[name ?? ''] = state;
  await api.close();
  return states;
};

/** The one thing that must be true in the end: each order has one effect, one key, one body, and a settled record. */
export const expectOneEach = async (scene: Scene, orders: readonly string[]): Promise<void> => {
  expect(scene.server.effects.map(({ order }) => order).toSorted()).toEqual(orders.toSorted());
  const distinct = orders.map(order => {
    const requests = requestsFor(scene, order);
    return { order, keys: new Set(requests.map(({ key }) => key)).size, bodies: new Set(requests.map(({ bytes }) => bytes)).size };
  });
  expect(distinct).toEqual(orders.map(order => ({ order, keys: 1, bodies: 1 })));
  expect(new Set(scene.server.requests.map(({ key }) => key)).size).toBe(orders.length);
  expect(await statesIn(scene)).toEqual(Object.fromEntries(orders.map(order => [`order:${order}:charge`, 'succeeded'])));
};

/** What the server holds to be true, by order. */
export const truth = ({ server }: Scene): Readonly<Record<string, unknown>> =>
  Object.fromEntries(server.effects.map(({ id, order, amount }) => [String(order), { id, order, amount }]));
