import { describe, expect, test } from 'vitest';
import type { Fault } from '../support/payment-server.js';
import type { Spoken } from '../keystore/support/processes.js';
import type { Step } from './support/errand.js';
import { expectOneEach, kill, learned, openScene, truth, type Scene } from './support/scene.js';

/** Only catches hangs: processes start slowly on a busy machine. */
const PATIENCE_MS = 120_000;

/** Processes that are killed at each step, half of them resumed, half of them called again. */
const KILLS = 20;
const ORDERS_EACH = 2;

/** Where a process dies, and what has happened by then. */
interface Death {
  readonly title: string;
  readonly stopAt?: Step;
  /** What the server does with what reaches it before the kill, in turns. */
  readonly faults: readonly Fault[];
  /** The operation is durable; before that nobody was promised anything. */
  readonly begun: boolean;
  /** The server has seen it. */
  readonly sent: boolean;
}

const WELL: Fault = { kind: 'none' };

const DEATHS: readonly Death[] = [
  { title: 'before its commit', stopAt: 'before-commit', faults: [], begun: false, sent: false },
  { title: 'C19: after its commit, before the send', stopAt: 'before-send', faults: [], begun: true, sent: false },
  { title: 'C12, C19: after the send, before the answer', faults: [{ kind: 'hang' }, { kind: 'slow' }], begun: true, sent: true },
  { title: 'in the middle of the answer', stopAt: 'mid-body', faults: [{ kind: 'half-body' }], begun: true, sent: true },
  { title: 'after the answer, before it is recorded', stopAt: 'before-settle', faults: [WELL], begun: true, sent: true },
];

const standing = (shop: Spoken, step: Step): Promise<unknown> => shop.line(`at ${step} ${ORDERS_EACH}`);

/** Processes at one step, all of them killed there; the orders they had in hand. */
const killAll = async (scene: Scene, { stopAt, faults, sent }: Death, processes: number): Promise<readonly string[]> => {
  const { server, shop } = scene;
  const batches = Array.from({ length: processes }, (_, at) => Array.from({ length: ORDERS_EACH }, (__, nth) => `${at}-${nth}`));
  const orders = batches.flat();
  if (sent) server.script(...orders.map((_, at) => faults[at % faults.length] ?? WELL));
  const shops = batches.map(batch => shop({ orders: batch, ...(stopAt && { stopAt }) }));
  await (stopAt ? Promise.all(shops.map(each => standing(each, stopAt))) : server.arrived(orders.length));
  await Promise.all(shops.map(kill));
  expect(learned(shops)).toEqual({});
  expect(server.requests.length).toBe(sent ? orders.length : 0);
  server.release();
  return orders;
};

describe.each(DEATHS)('killed with SIGKILL $title, 20 times', { timeout: PATIENCE_MS }, death => {
  test('a fresh process resumes: each order is charged once, and its answer is learned', async () => {
    const scene = await openScene();
    const orders = await killAll(scene, death, KILLS / 2);
    const fresh = scene.shop({ orders, resume: true });
    expect(await fresh.line('resumed')).toBe(`resumed ${death.begun ? orders.length : 0}`);
    await fresh.line('closed');
    expect(learned([fresh])).toEqual(truth(scene));
    await expectOneEach(scene, orders);
  });

  test('a fresh process calls the names again: each order is charged once, and its answer is learned', async () => {
    const scene = await openScene();
    const orders = await killAll(scene, death, KILLS / 2);
    const fresh = scene.shop({ orders });
    await fresh.line('closed');
    expect(learned([fresh])).toEqual(truth(scene));
    await expectOneEach(scene, orders);
  });
});
