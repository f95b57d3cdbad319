import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mortalStore } from '../../src/msw/mortal-store.js';
import { createDedup } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { gate, requestOf } from './support/endpoint.js';

const HOUR = 3_600_000;
const LEASE = 6 * HOUR;
const RETENTION = 24 * HOUR;

/** How a run ends: with an effect and an answer; refused; failed before or after an effect; or its process dies after the effect. */
type End = 'answer' | 'refuse' | 'fail' | 'fail-after-effect' | 'die';

type Step =
  | { readonly do: 'send'; readonly key: string; readonly body: string }
  | { readonly do: 'end'; readonly nth: number; readonly how: End }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'purge' };

/** What is true of one life of a key: from its first run until it is forgotten. */
interface Life {
  readonly body: string;
  state: 'running' | 'dead' | 'answered' | 'released' | 'doubt';
  effects: number;
  answer: string;
  /** When it ended, or died. */
  at: number;
}

const stepsOf = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant('send' as const), key: fc.constantFrom('k1', 'k2'), body: fc.constantFrom('a', 'a', 'a', 'b') }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('end' as const), nth: fc.nat(5), how: fc.constantFrom<End>('answer', 'answer', 'refuse', 'fail', 'fail-after-effect', 'die') }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 2 * HOUR, LEASE, RETENTION - 1, RETENTION) }) },
    { weight: 1, arbitrary: fc.constant({ do: 'purge' as const }) },
  ),
  { minLength: 1, maxLength: 25 },
);

/** What the contract says of a request, in one line each. */
const expected = (life: Life | undefined, body: string, now: number): 'runs' | 'replay' | 422 | 'in-progress' | 'doubt' => {
  if (!life || ((life.state === 'answered' || life.state === 'released') && now >= life.at + RETENTION)) return 'runs';
  if (life.body !== body) return 422;
  if (life.state === 'released') return 'runs';
  if (life.state === 'answered') return 'replay';
  if (life.state === 'running') return 'in-progress';
  return life.state === 'dead' && now < life.at ? 'in-progress' : 'doubt';
};

interface OpenRun {
  readonly life: Life;
  readonly end: (how: End) => Promise<void>;
}

const worldOf = () => {
  const clock = manualClock();
  const store = memoryDedupStore({ clock });
  const lives = new Map<string, Life>();
  const open: OpenRun[] = [];
  let answers = 0;

  const lifeFor = (key: string, body: string): Life => {
    const old = lives.get(key);
    if (old?.state === 'released' && clock.now() < old.at + RETENTION) return Object.assign(old, { state: 'running' });
    const life: Life = { body, state: 'running', effects: 0, answer: '', at: 0 };
    lives.set(key, life);
    return life;
  };

  const handlerOf = (key: string, body: string, death: AbortController, began: () => void) => async (_request: Request, context: { effectStarted(): Promise<void> }): Promise<Response> => {
    const life = lifeFor(key, body);
    const told = gate<End>();
    const over = gate();
    open.push({ life, end: async how => (told.open(how), over.opened) });
    began();
    const how = await told.opened;
    const finish = (state: Life['state'], effects: number, at = clock.now()): void => {
      Object.assign(life, { state, effects: life.effects + effects, at });
      queueMicrotask(() => over.open());
    };
    if (how === 'answer') {
      life.answer = `${key} ${(answers += 1)}`;
      finish('answered', 1);
      return new Response(life.answer, { status: 201 });
    }
    if (how === 'refuse') {
      life.answer = `refused ${(answers += 1)}`;
      finish('answered', 0);
      return new Response(life.answer, { status: 422 });
    }
    if (how === 'die') {
      // Its last renewal was at most a third of a lease ago; the exact end is the record's.
      const row = await store.get({ scope: '1:t6:charge', key });
      finish('dead', 1, row?.leaseUntil);
      death.abort();
      return new Response('never heard');
    }
    if (how === 'fail-after-effect') await context.effectStarted();
    finish(how === 'fail' ? 'released' : 'doubt', how === 'fail' ? 0 : 1);
    throw new Error(how);
  };

  const send = async (key: string, body: string): Promise<void> => {
    const life = lives.get(key);
    const want = expected(life, body, clock.now());
    const death = new AbortController();
    const began = gate();
    const dedup = createDedup({ store: mortalStore(store, death.signal), clock, scope: () => 't', lease: LEASE, retention: RETENTION, on: { failed: () => {} } });
    const answered = dedup.handle(requestOf({ key, body, type: 'text/plain' }), handlerOf(key, body, death, () => began.open()), { name: 'charge' });
    const response = await Promise.race([began.opened, answered]);
    const text = response ? await response.text() : '';
    const code = response?.headers.get('content-type') === 'application/problem+json' ? (JSON.parse(text) as { code: string }).code : undefined;
    if (want === 'runs') expect(response).toBeUndefined();
    if (want === 'replay') expect([response?.headers.get('idempotent-replayed'), text]).toEqual(['true', life?.answer]);
    if (want === 422) expect(code).toBe('idempotency_key_reused');
    if (want === 'in-progress') expect(code).toBe('idempotency_in_progress');
    if (want === 'doubt') expect(code).toBe('idempotency_indeterminate');
  };

  const take = async (step: Step): Promise<void> => {
    if (step.do === 'send') await send(step.key, step.body);
    if (step.do === 'pass') await clock.advance(step.ms);
    if (step.do === 'purge') await store.purge();
    if (step.do === 'end' && open.length > 0) {
      const [run] = open.splice(step.nth % open.length, 1);
      await run?.end(step.how);
      // The end is written in turns of its own.
      await clock.advance(0);
    }
    for (const life of lives.values()) expect(life.effects).toBeLessThanOrEqual(1);
  };
  return { take };
};

describe('the engine against a model', () => {
  it('has at most one effect in a life of a key, and every replay is its first answer', async () => {
    await fc.assert(
      fc.asyncProperty(stepsOf, async steps => {
        const world = worldOf();
        for (const step of steps) await world.take(step);
      }),
      { numRuns: 150 },
    );
  }, 60_000);
});
