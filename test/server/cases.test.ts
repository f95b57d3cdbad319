import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { mortalStore } from '../../src/msw/mortal-store.js';
import { ietf } from '../../src/profiles/ietf.js';
import { stripe } from '../../src/profiles/stripe.js';
import type { Profile } from '../../src/profiles/profile.js';
import { migrate } from '../../src/server/migrate.js';
import { RetryableError, type HandlerContext } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import type { SqlExecutor } from '../../src/sql/database.js';
import { fromNodeSqlite, onNodeSqlite } from '../../src/sql/node-sqlite.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { codeOf, endpointOf, isReplay, LEASE, type Stage } from './support/endpoint.js';

bePatient();

const stageOf = (): Stage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

/** A worker that is killed once its handler has done `before`; what it answers is never heard. */
const killAfter = async (stage: Stage, before: (context: HandlerContext) => Promise<void> | void, options: Parameters<typeof endpointOf>[2] = {}): Promise<void> => {
  const death = new AbortController();
  const doomed = endpointOf({ ...stage, store: mortalStore(stage.store, death.signal) }, async (_request, context) => {
    await before(context);
    death.abort();
    return new Response('never heard');
  }, options);
  void doomed.send({ key: 'k' });
  await expect.poll(() => death.signal.aborted).toBe(true);
};

describe('a crash between claim and completion', () => {
  it('C68: until the lease ends a retry is told to wait no longer than that, then exactly one of 20 takes over', async () => {
    const stage = stageOf();
    const options = { effects: 'idempotent', maxRetryAfter: 60_000 } as const;
    await killAfter(stage, () => {}, options);
    const endpoint = endpointOf(stage, undefined, options);
    for (const left of [20_000, 5_000, 1_000]) {
      const row = await stage.store.get({ scope: '4:acme6:charge', key: 'k' });
      await stage.clock.advance((row?.leaseUntil ?? 0) - stage.clock.now() - left);
      const early = await endpoint.send({ key: 'k' });
      expect([early.status, await codeOf(early)]).toEqual([409, 'idempotency_in_progress']);
      expect(Number(early.headers.get('retry-after'))).toBe(left / 1_000);
    }
    await stage.clock.advance(1_001);
    const responses = await Promise.all(Array.from({ length: 20 }, () => endpoint.send({ key: 'k' })));
    expect(endpoint.runs).toBe(1);
    expect(responses.filter(response => response.headers.get('idempotency-status') === 'stored')).toHaveLength(1);
    for (const { status } of responses) expect([201, 409]).toContain(status);
  });
});

describe('a side effect that may have happened', () => {
  it('C69: by default nobody runs again whose worker died, whatever its handler had said', async () => {
    const stage = stageOf();
    let charges = 0;
    await killAfter(stage, () => void (charges += 1));
    await stage.clock.advance(LEASE + 1);
    const endpoint = endpointOf(stage, () => new Response(`charge ${(charges += 1)}`));
    for (let again = 0; again < 2; again += 1) {
      const response = await endpoint.send({ key: 'k' });
      expect([response.status, await response.json()]).toMatchObject([409, { code: 'idempotency_indeterminate', retryable: false, safe_new_key: false }]);
    }
    expect([endpoint.runs, charges]).toEqual([0, 1]);
  });

  it('C69: an effect that was announced is not repeated, whether its handler throws, answers 500, or dies', async () => {
    const ends: Record<string, () => Response> = {
      throws: () => {
        throw new TypeError('the network went away');
      },
      answers: () => new Response(null, { status: 500 }),
    };
    for (const [name, end] of Object.entries(ends)) {
      const endpoint = endpointOf(stageOf(), async (_request, context) => (await context.effectStarted(), end()));
      expect([name, (await endpoint.send({ key: 'k' })).status]).toEqual([name, 500]);
      expect([name, await codeOf(await endpoint.send({ key: 'k' })), endpoint.runs]).toEqual([name, 'idempotency_indeterminate', 1]);
    }
    const stage = stageOf();
    await killAfter(stage, context => context.effectStarted(), { effects: 'marked' });
    await stage.clock.advance(LEASE + 1);
    const endpoint = endpointOf(stage, undefined, { effects: 'marked' });
    expect([await codeOf(await endpoint.send({ key: 'k' })), endpoint.runs]).toEqual(['idempotency_indeterminate', 0]);
  });

  it('C69: an effect in the transaction that records the answer is undone with it, so a retry runs safely', async () => {
    const clock = manualClock();
    const sqlite = new DatabaseSync(':memory:');
    const database = fromNodeSqlite(sqlite);
    await migrate(database, 'sqlite');
    sqlite.exec('CREATE TABLE charges (id INTEGER PRIMARY KEY)');
    const store = sqliteDedupStore(database, { clock });
    const endpoint = endpointOf({ store, clock } as Stage, async (_request, { attempt, ...context }) => {
      const tx: SqlExecutor = onNodeSqlite((await context.transaction()) as DatabaseSync);
      await tx.query('INSERT INTO charges DEFAULT VALUES');
      if (attempt === 1) throw new TypeError('after the effect');
      return new Response('charged', { status: 201 });
    });
    const charges = (): unknown => sqlite.prepare('SELECT count(*) AS count FROM charges').get()?.['count'];
    expect([(await endpoint.send({ key: 'k' })).status, charges()]).toEqual([500, 0]);
    expect([(await endpoint.send({ key: 'k' })).status, charges()]).toEqual([201, 1]);
    expect([isReplay(await endpoint.send({ key: 'k' })), charges(), endpoint.runs]).toEqual([true, 1, 2]);
    sqlite.close();
  });
});

/** What the next request under the key meets. */
type Next = 'its replay' | 'a second run, of this request only' | 'a second run, of any request' | 'doubt';

interface Failure {
  readonly work: (context: HandlerContext) => Response | Promise<Response>;
  /** By profile. */
  readonly next: readonly [ietf: Next, stripe: Next, successOnly: Next];
}

const answering = (status: number): Failure['work'] => () => Response.json({ status }, { status });

const thrown = async (context: HandlerContext, announced: boolean, error: Error): Promise<never> => {
  if (announced) await context.effectStarted();
  throw error;
};

const [REPLAY, SAME, ANY, DOUBT] = ['its replay', 'a second run, of this request only', 'a second run, of any request', 'doubt'] as const;

/** The policy, in whole. */
const FAILURES: Readonly<Record<string, Failure>> = {
  '201': { work: answering(201), next: [REPLAY, REPLAY, REPLAY] },
  '400 validation': { work: answering(400), next: [REPLAY, REPLAY, SAME] },
  '404': { work: answering(404), next: [REPLAY, REPLAY, SAME] },
  '409 business conflict': { work: answering(409), next: [REPLAY, REPLAY, SAME] },
  '401': { work: answering(401), next: [ANY, ANY, ANY] },
  '429': { work: answering(429), next: [ANY, ANY, ANY] },
  '500 from the handler': { work: answering(500), next: [SAME, REPLAY, SAME] },
  '503 from the handler': { work: answering(503), next: [SAME, REPLAY, SAME] },
  'thrown before an effect': { work: context => thrown(context, false, new TypeError('early')), next: [SAME, REPLAY, SAME] },
  'thrown after an effect was announced': { work: context => thrown(context, true, new TypeError('late')), next: [DOUBT, REPLAY, DOUBT] },
  'thrown after an effect that was undone': { work: context => thrown(context, true, new RetryableError('refunded')), next: [SAME, SAME, SAME] },
};

const PROFILES: readonly (readonly [string, Profile])[] = [['ietf', ietf], ['stripe', stripe], ['one that stores successes only', { ...ietf, stores: 'success' }]];

describe('which failures are stored', () => {
  const rows = PROFILES.flatMap(([name, profile], at) => Object.entries(FAILURES).map(([what, { work, next }]) => ({ name, profile, what, work, next: next[at] as Next })));

  it.each(rows)('C85: in $name, after $what comes $next', async ({ profile, work, next }) => {
    const endpoint = endpointOf(stageOf(), (_request, context, run) => (run === 1 ? work(context) : new Response('second', { status: 202 })), { profile });
    const first = await endpoint.send({ key: 'k' });
    expect([isReplay(first), first.headers.get('idempotency-status') === 'replayed']).toEqual([false, false]);
    const firstText = await first.text();
    const other = await endpoint.send({ key: 'k', body: '{"amount":1}' });
    expect(other.status === 202).toBe(next === ANY);
    if (next === ANY) return;
    const again = await endpoint.send({ key: 'k' });
    const text = await again.text();
    if (next === REPLAY) expect([again.status, text, isReplay(again), endpoint.runs]).toEqual([first.status, firstText, true, 1]);
    else expect(isReplay(again)).toBe(false);
    if (next === SAME) expect([again.status, text, endpoint.runs]).toEqual([202, 'second', 2]);
    if (next === DOUBT) expect([again.status, (JSON.parse(text) as { code: string }).code, endpoint.runs]).toEqual([409, 'idempotency_indeterminate', 1]);
  });
});

/** A form as a platform writes it. */
const formOf = (boundary: string, { tags = ['a', 'b'], file = 'bytes', name = 'cat.png' } = {}): { body: string; type: string } => {
  const part = (head: string, value: string): string => `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
  const parts = [...tags.map(tag => part('name="tag"', tag)), part(`name="file"; filename="${name}"`, file)];
  return { body: `${parts.join('')}--${boundary}--\r\n`, type: `multipart/form-data; boundary=${boundary}` };
};

describe('a form', () => {
  it('C35: is the same request, whichever platform drew its boundary', async () => {
    const boundaries = ['----WebKitFormBoundaryAbC123', '---------------------------9051914041544843365972754266', '----formdata-undici-012345678901', '-WebkitFormBoundary7f3a', '----geckoformboundary5d1e'];
    const endpoint = endpointOf(stageOf());
    await endpoint.send({ key: 'k', ...formOf('first') });
    for (const boundary of boundaries) expect([boundary, isReplay(await endpoint.send({ key: 'k', ...formOf(boundary) }))]).toEqual([boundary, true]);
    expect(endpoint.runs).toBe(1);
  });

  it('C35: is another request with another byte, file name, or order of equal names', async () => {
    const endpoint = endpointOf(stageOf());
    await endpoint.send({ key: 'k', ...formOf('first') });
    for (const change of [{ file: 'Bytes' }, { name: 'dog.png' }, { tags: ['b', 'a'] }]) {
      expect([change, (await endpoint.send({ key: 'k', ...formOf('second', change) })).status]).toEqual([change, 422]);
    }
  });
});
