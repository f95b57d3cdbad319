import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openOrSkip } from '../../support/open-for-all.js';
import { SUBJECTS } from './support/databases.js';
import { startFleet, type Fleet } from './support/fleet.js';
import type { Endpoint } from './support/job.js';

/** Only catches hangs: processes start slowly on a busy machine. */
const PATIENCE_MS = 120_000;

/** ms; short, because whoever repeats the request of a dead worker waits for it. */
const LEASE_MS = 500;

const WORKERS = 2;
const CLIENTS = 8;
const KILLS = 6;

/** ms between two tries of a client; a shop has many clients, and few of them at once. */
const PAUSE_MS = 10;

interface Order {
  readonly endpoint: Endpoint;
  readonly key: string;
}

/** An order, and what its first answer said. */
interface Told extends Order {
  readonly answer: unknown;
}

/** The answer, or undefined when the worker died over it. */
const tryOnce = async (fleet: Fleet, { endpoint, key }: Order, at: number): Promise<{ readonly status: number; readonly replayed: boolean; readonly json: unknown } | undefined> => {
  try {
    const response = await fleet.pick(at).send(endpoint, key);
    return { status: response.status, replayed: response.headers.has('idempotent-replayed'), json: await response.json() };
  } catch {
    return undefined;
  }
};

/** Repeats a request until it is answered, and counts how often a worker died over it. */
const ask = async (fleet: Fleet, order: Order): Promise<{ readonly answer: unknown; readonly deaths: number }> => {
  let deaths = 0;
  for (let tries = 0; ; tries += 1) {
    const answer = await tryOnce(fleet, order, tries);
    if (answer?.status === 201) return { answer: answer.json, deaths };
    expect([undefined, 409]).toContain(answer?.status);
    if (!answer) deaths += 1;
    await sleep(PAUSE_MS);
  }
};

describe.each(SUBJECTS)('workers that are killed at random moments, $name', ({ open, batches }) => {
  const endpoints = (['tx', 'lease'] as const).filter(name => batches.flat().some(({ endpoint }) => endpoint === name));

  test('C68, C92: every request that is repeated until it is answered has one effect, of which its answers tell', { timeout: PATIENCE_MS }, async context => {
    const database = await openOrSkip(context, open());
    const fleet = await startFleet({ database: database.at, lease: LEASE_MS }, WORKERS);
    const told: Told[] = [];
    let [orders, deaths, stormy] = [0, 0, true];
    const client = async (): Promise<void> => {
      while (stormy) {
        const at = (orders += 1);
        const order: Order = { endpoint: endpoints[at % endpoints.length] as Endpoint, key: `order-${at}` };
        const asked = await ask(fleet, order);
        told.push({ ...order, answer: asked.answer });
        deaths += asked.deaths;
        await sleep(PAUSE_MS);
      }
    };
    const storm = async (): Promise<void> => {
      // Until some have died over a request, which is what this is about.
      for (let kills = 0; kills < KILLS || deaths === 0; kills += 1) await fleet.kill();
      stormy = false;
    };
    await Promise.all([storm(), ...Array.from({ length: CLIENTS }, client)]);
    expect([told.length, deaths > 0]).toEqual([orders, true]);
    const charges = await database.allCharges();
    expect(charges.size).toBe(told.length);
    for (const [at, order] of told.entries()) {
      expect([charges.get(order.key)?.map(id => ({ id })), await tryOnce(fleet, order, at)]).toEqual([[order.answer], { status: 201, replayed: true, json: order.answer }]);
    }
    await fleet.close();
    await database.workersGone();
    await database.close();
  });
});
