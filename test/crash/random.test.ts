import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Fault } from '../support/payment-server.js';
import { expectOneEach, go, kill, learned, openScene, truth, type Scene } from './support/scene.js';

/** Only catches hangs: processes start slowly on a busy machine. */
const PATIENCE_MS = 120_000;

/** Processes that live at the same time, and how often each is killed and started again. */
const SHOPS = 2;
const KILLS_EACH = 10;
const ORDERS_PER_LIFE = 5;

/** Longest life after the start, ms: about as long as its orders take. */
const LIFE_MS = 150;

const FAULTS: readonly Fault[] = [
  { kind: 'none' },
  { kind: 'lose-request' },
  { kind: 'lose-response' },
  { kind: 'cut-body' },
  { kind: 'delay', ms: 30 },
  { kind: 'status', status: 503 },
];

/** The same numbers in every run; what they meet is up to the machine. */
const sequence = (seed: number): (() => number) => {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) >>> 0) / 2 ** 32;
};

interface Past {
  readonly orders: readonly string[];
  /** Lives that ended with work in hand. */
  readonly cutShort: number;
}

/** Lives and dies again and again; every life resumes what the others left behind and takes more orders. */
const lives = async ({ server, shop }: Scene, lane: number): Promise<Past> => {
  const next = sequence(lane + 1);
  const orders: string[] = [];
  let cutShort = 0;
  for (let life = 0; life < KILLS_EACH; life += 1) {
    orders.push(...Array.from({ length: ORDERS_PER_LIFE }, (_, at) => `${lane}-${life}-${at}`));
    server.script(...Array.from({ length: ORDERS_PER_LIFE }, () => FAULTS[Math.floor(next() * FAULTS.length)] as Fault));
    const process = shop({ orders, stopAt: 'start', resume: life % 2 === 0 });
    await process.line('at start');
    go(process);
    await sleep(next() * LIFE_MS);
    await kill(process);
    if (Object.keys(learned([process])).length < orders.length) cutShort += 1;
  }
  return { orders, cutShort };
};

test('C12, C25: two processes that are killed at random moments, on a server that fails at random, charge each order once', { timeout: PATIENCE_MS }, async () => {
  const scene = await openScene();
  const pasts = await Promise.all(Array.from({ length: SHOPS }, (_, lane) => lives(scene, lane)));
  const orders = pasts.flatMap(past => past.orders);
  expect(pasts.every(({ cutShort }) => cutShort > 0)).toBe(true);
  const survivor = scene.shop({ orders, resume: true });
  await survivor.line('closed');
  expect(learned([survivor])).toEqual(truth(scene));
  await expectOneEach(scene, orders);
});
