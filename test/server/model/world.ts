import { expect } from 'vitest';
import type { Claim, ClaimResult, Hold, RecordRef, Resolution, Settlement, StoredAnswer } from '../../../src/server/record.js';
import type { DedupStoreSubject } from '../../../src/testing/index.js';
import { DROP_DOUBT_AFTER, effectsOf, isOver, KEY_RETENTION, LEASE, replayOf, RETENTION, STATES, verdictOn, type Life, type Worker } from './life.js';
import { KEYS, type Body, type End, type Key, type Step } from './steps.js';

const MINUTE = 60_000;
/** ms: closer to a limit than this, a store with a clock that runs may be on either side of it. */
const NEAR = 30_000;

const refOf = (key: Key): RecordRef => (key === 'marked elsewhere' ? { scope: 'elsewhere', key: 'marked' } : { scope: 'shop', key });

const holdOf = (worker: Worker): Hold => ({ ...refOf(worker.life.key), owner: worker.owner, fence: worker.fence });

export interface World {
  take(step: Step): Promise<void>;
  /** What happened so far, a line for each step. */
  readonly story: readonly string[];
}

/** A store and what must be true of it, side by side. Throws when they differ. */
export const worldOf = ({ store, pass }: DedupStoreSubject): World => {
  const lives = new Map<Key, Life>();
  /** The youngest first. */
  const workers: Worker[] = [];
  /** What each worker has said so far, so that it can repeat itself. */
  const said = new Map<Worker, Partial<Record<End, Settlement>>>();
  const story: string[] = [];
  let now = 0;
  let made = 0;

  const answerOf = (status: number): StoredAnswer => ({
    status, headers: [['x-answer', String((made += 1))]], body: new TextEncoder().encode(`answer ${made}`),
  });

  const claimOf = (key: Key, body: Body, owner: string): Claim => ({
    ...refOf(key), owner, fingerprint: `v1:sha256:${body}`, operationRef: `ref-${owner}`, lease: LEASE, keyRetention: KEY_RETENTION,
    effects: effectsOf(key), onExpired: 'fresh',
  });

  /** What it means to have won: a life begins, or the same one goes on with a worker of its own. */
  const begin = (key: Key, body: Body, owner: string, result: ClaimResult & { kind: 'won' }): void => {
    const before = lives.get(key);
    const goesOn = before !== undefined && !isOver(before, now);
    const life: Life = goesOn
      ? before
      : { key, ref: `ref-${owner}`, state: 'running', body, holder: undefined, attempts: 0, leaseUntil: 0, keyUntil: 0, doubtSince: 0, answer: undefined, answerUntil: 0, effects: 0 };
    expect({ attempt: result.attempt, ref: result.operationRef }).toEqual({ attempt: life.attempts + 1, ref: life.ref });
    if (goesOn && before.holder) expect(result.fence).toBeGreaterThan(before.holder.fence);
    const holder: Worker = { owner, body, life, fence: result.fence, announced: false, acted: false, stopped: false };
    lives.set(key, Object.assign(life, { state: 'running', body, holder, attempts: life.attempts + 1, leaseUntil: now + LEASE, keyUntil: now + KEY_RETENTION }));
    workers.unshift(holder);
  };

  const hear = (key: Key, body: Body, owner: string, result: ClaimResult): void => {
    const life = lives.get(key);
    story.push(`${owner} claims ${key} for ${body}: ${result.kind}`);
    if (result.kind === 'won') return begin(key, body, owner, result);
    expect(result.operationRef).toBe(life?.ref);
    if (result.kind === 'completed') expect(result.answer).toEqual(life && replayOf(life, now));
    if (result.kind === 'in-progress') expect(Math.abs((life?.leaseUntil ?? 0) - now - result.leaseLeft)).toBeLessThan(NEAR);
    if (result.kind === 'indeterminate' && life?.state === 'running') Object.assign(life, { state: 'doubt', doubtSince: now });
  };

  const nextOwner = (): string => `w${(made += 1)}`;

  const race = async (key: Key, body: Body, count: number): Promise<void> => {
    const wanted = verdictOn(lives.get(key), body, now);
    const owners = Array.from({ length: count }, nextOwner);
    const results = await Promise.all(owners.map(owner => store.claim(claimOf(key, body, owner))));
    const losers = wanted === 'won' ? 'in-progress' : wanted;
    const kinds = results.map(({ kind }) => kind).sort();
    expect(kinds).toEqual([...(wanted === 'won' ? [wanted] : [losers]), ...Array.from({ length: count - 1 }, () => losers)].sort());
    // The winner first: what the others heard is about its run.
    const heard = results.map((result, at) => [owners[at] ?? '', result] as const).sort(([, a], [, b]) => Number(b.kind === 'won') - Number(a.kind === 'won'));
    for (const [owner, result] of heard) hear(key, body, owner, result);
  };

  /** Whether the worker may speak: it holds the key, in a life that is not forgotten. */
  const speaks = (worker: Worker): boolean => worker.life.holder === worker && lives.get(worker.life.key) === worker.life;

  /** Runs what a worker says; where it does not count, nothing may change. Undefined: the row may be forgotten already, so either answer will do. */
  const say = async (worker: Worker, counts: boolean | undefined, what: string, call: (hold: Hold) => Promise<boolean>): Promise<boolean> => {
    const hold = holdOf(worker);
    const before = await store.get(hold);
    const accepted = await call(hold);
    story.push(`${worker.owner} ${what}: ${accepted ? 'accepted' : 'refused'}`);
    if (counts !== undefined) expect(accepted).toBe(counts);
    if (!counts) expect(await store.get(hold)).toEqual(before);
    return accepted;
  };

  const renew = async (worker: Worker, announce: boolean): Promise<void> => {
    const counts = speaks(worker) && worker.life.state === 'running';
    const accepted = await say(worker, counts, announce ? 'announces an effect' : 'renews', hold => store.renew(hold, LEASE, announce));
    if (!accepted) return;
    worker.life.leaseUntil = now + LEASE;
    worker.announced ||= announce;
  };

  const claimAgain = async (worker: Worker): Promise<void> => {
    const { life, owner, body } = worker;
    if (!speaks(worker) || life.state !== 'running') return;
    const result = await store.claim(claimOf(life.key, body, owner));
    story.push(`${owner} claims again: ${result.kind}`);
    expect(result).toEqual({ kind: 'won', fence: worker.fence, attempt: life.attempts, operationRef: life.ref });
    life.leaseUntil = now + LEASE;
  };

  /** External effects begin unasked, marked ones only once they are announced; those that are idempotent add up to one. */
  const act = (worker: Worker): void => {
    const { life } = worker;
    const effects = effectsOf(life.key);
    if (worker.acted || worker.stopped || said.has(worker) || (effects === 'marked' && !worker.announced)) return;
    worker.acted = true;
    life.effects = effects === 'idempotent' ? 1 : life.effects + 1;
    story.push(`${worker.owner} has its effect`);
  };

  const settlementOf = (worker: Worker, how: End): Settlement => {
    if (how === 'answer') return { to: 'completed', answer: answerOf(worker.acted ? 201 : 402), retention: RETENTION, keyRetention: KEY_RETENTION };
    if (worker.acted || worker.announced) return { to: 'indeterminate', reason: 'test' };
    return { to: 'retryable', keepFingerprint: how === 'fail', keyRetention: KEY_RETENTION };
  };

  const answered = (life: Life, answer: StoredAnswer): void =>
    void Object.assign(life, { state: 'answered', answer, answerUntil: now + RETENTION, keyUntil: now + KEY_RETENTION });

  const end = async (worker: Worker, how: End): Promise<void> => {
    const settlement = said.get(worker)?.[how] ?? settlementOf(worker, how);
    said.set(worker, { ...said.get(worker), [how]: settlement });
    const { life } = worker;
    const repeats = STATES[life.state] === settlement.to;
    const counts = speaks(worker) && (life.state === 'running' || repeats || (life.state === 'doubt' && settlement.to === 'completed'));
    const accepted = await say(worker, counts && isOver(life, now) ? undefined : counts, `ends as ${settlement.to}`, hold => store.settle(hold, settlement));
    if (!accepted || repeats) return;
    if (settlement.to === 'completed') answered(life, settlement.answer);
    if (settlement.to === 'indeterminate') Object.assign(life, { state: 'doubt', doubtSince: now });
    if (settlement.to === 'retryable') Object.assign(life, { state: 'released', keyUntil: now + KEY_RETENTION, body: settlement.keepFingerprint ? life.body : undefined });
  };

  const resolve = async (key: Key): Promise<void> => {
    const life = lives.get(key);
    const counts = life !== undefined && (life.state === 'doubt' || (life.state === 'running' && life.leaseUntil <= now));
    const answer = answerOf(200);
    const resolution: Resolution = life?.effects ? { to: 'completed', answer, retention: RETENTION, keyRetention: KEY_RETENTION } : { to: 'retryable', keyRetention: KEY_RETENTION };
    const accepted = await store.resolve(refOf(key), resolution);
    story.push(`${key} is resolved as ${resolution.to}: ${accepted ? 'accepted' : 'refused'}`);
    expect(accepted).toBe(counts);
    if (!life || !accepted) return;
    if (resolution.to === 'completed') answered(life, answer);
    else Object.assign(life, { state: 'released', keyUntil: now + KEY_RETENTION });
    life.holder = undefined;
    for (const worker of workers) worker.stopped ||= worker.life === life;
  };

  const isNear = (): boolean => [...lives.values()].some(({ leaseUntil, keyUntil, answerUntil, doubtSince }) =>
    [leaseUntil, keyUntil, answerUntil, doubtSince + DROP_DOUBT_AFTER].some(limit => Math.abs(limit - now) < NEAR));

  const advance = async (minutes: number): Promise<void> => {
    const from = now;
    now += minutes * MINUTE;
    while (isNear()) now += 2 * NEAR;
    await pass(now - from);
    story.push(`${(now - from) / MINUTE} min pass`);
  };

  const purge = async (dropDoubt: boolean): Promise<void> => {
    await store.purge(dropDoubt ? { dropIndeterminateAfter: DROP_DOUBT_AFTER } : {});
    story.push(dropDoubt ? 'a purge that gives up old doubt' : 'a purge');
    for (const [key, life] of lives) {
      // What a purge has dropped does not come back with a clock that is set back.
      if (life.answerUntil <= now) life.answerUntil = -Infinity;
      if (life.state === 'running' && life.leaseUntil <= now && life.keyUntil <= now) Object.assign(life, { state: 'doubt', doubtSince: now });
      else if (isOver(life, now) || (dropDoubt && life.state === 'doubt' && life.doubtSince + DROP_DOUBT_AFTER <= now)) lives.delete(key);
    }
  };

  const perform = (step: Step): Promise<void> | void => {
    if ('nth' in step) {
      const worker = workers[step.nth % Math.max(workers.length, 1)];
      if (!worker) return undefined;
      if (step.do === 'end') return end(worker, step.how);
      if (step.do === 'effect') return act(worker);
      return step.do === 'claim again' ? claimAgain(worker) : renew(worker, step.do === 'announce');
    }
    if (step.do === 'claim') return race(step.key, step.body, 1);
    if (step.do === 'race') return race(step.key, step.body, step.count);
    if (step.do === 'resolve') return resolve(step.key);
    return step.do === 'pass' ? advance(step.minutes) : purge(step.dropDoubt);
  };

  /** What holds after every step, whatever it was. */
  const check = async (): Promise<void> => {
    for (const key of KEYS) {
      const life = lives.get(key);
      const row = await store.get(refOf(key));
      if (life) expect(life.effects).toBeLessThanOrEqual(1);
      // A store may forget what is over by itself; nothing else.
      if (life && !isOver(life, now)) expect({ state: row?.state, ref: row?.operationRef }).toEqual({ state: STATES[life.state], ref: life.ref });
      if (!life) expect(row).toBeUndefined();
    }
  };

  return {
    story,
    async take(step) {
      await perform(step);
      await check();
    },
  };
};
