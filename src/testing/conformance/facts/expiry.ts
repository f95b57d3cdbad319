import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Stage } from '../stage.js';
import { codeOf, ensureMembers, ensureRuns, ensureSame, ensureStatus, startHeld } from './common.js';

const PURGES = 3;

/** Purges until nothing is left to purge. Answers with how much there was. */
const purgeAll = async ({ subject }: Stage): Promise<number> => {
  let deleted = 0;
  for (let more = true; more;) {
    const report = await subject.purge?.();
    deleted += report?.deleted ?? 0;
    more = report?.more ?? false;
  }
  return deleted;
};

const SKEWS_MS = [-300_000, 300_000];

const skewed = (clockSkew: number, id: string): Fact => ({
  id,
  name: `a server whose clock is ${clockSkew < 0 ? 'behind' : 'ahead'} by five minutes judges leases and expiry as the others do`,
  needs: ['time', 'second server'],
  config: { clockSkew },
  async run({ scenario, words, lease, retention, margin, advance, open }) {
    const charge = scenario({ hold: true }, {});
    const { answer: running } = await startHeld(charge);
    const exact = await open({ clockSkew: 0 });
    for (const to of [undefined, exact]) {
      const refused = await charge.send({ to });
      ensureStatus(refused, { words, is: ['inProgress'] }, 'a duplicate, at either server,');
      ensure(Number(refused.headers.get('retry-after') ?? 1) <= lease / 1000, 'it waits no longer than the lease');
    }
    await charge.release();
    const first = await running;
    await advance(retention - margin);
    for (const to of [undefined, exact]) ensureSame(await charge.send({ to }), first, 'the answer is remembered to its end');
    await advance(2 * margin);
    ensureEqual((await charge.send()).status, 201, 'and no longer');
    await ensureRuns(charge, 2);
  },
});

/** How keys get old, and how their records are kept few. */
export const expiry: readonly Fact[] = [
  {
    id: '31a',
    name: 'C72: an expired key that nobody purged runs once under 20 requests at once, whatever their body',
    needs: ['time'],
    async run({ scenario, words, retention, margin, advance }) {
      const charge = scenario();
      await charge.send();
      await advance(retention + margin);
      const all = await Promise.all(Array.from({ length: 20 }, () => charge.send({ body: '{"amount":1}' })));
      for (const answer of all) ensureStatus(answer, { words, is: [201, 'inProgress'] }, 'each of them');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '54a',
    name: 'a key is replayed until its time is over, and runs as a new request after it',
    needs: ['time'],
    async run({ scenario, retention, margin, advance }) {
      const charge = scenario();
      const first = await charge.send();
      await advance(retention - margin);
      ensureSame(await charge.send(), first, 'just before');
      await advance(2 * margin);
      ensureEqual((await charge.send()).status, 201, 'just after');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '54b',
    name: 'or is refused after it, where an old key is not to run again',
    needs: ['time'],
    config: { onExpired: 'refuse' },
    async run({ scenario, retention, margin, advance, words }) {
      const charge = scenario();
      await charge.send();
      await advance(retention + margin);
      ensureStatus(await charge.send(), { words, is: ['expired'] }, 'the old key');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '54c',
    name: 'the refusal of an old key says what its answer was',
    needs: ['time'],
    config: { onExpired: 'refuse' },
    wording: true,
    async run({ scenario, retention, margin, advance }) {
      const charge = scenario();
      await charge.send();
      await advance(retention + margin);
      const refused = await charge.send();
      ensureEqual(refused.status, 412, 'the status');
      ensureMembers(refused, { code: 'idempotency_key_expired', original_status: 201, safe_new_key: false }, 'what the document says');
    },
  },
  {
    id: '54h',
    name: 'there a time-ordered key that is older than its window is refused, although nobody remembers it',
    config: { onExpired: 'refuse' },
    async run({ scenario, words }) {
      const charge = scenario();
      // A UUID of version 7 says when it was made: this one in January 2015.
      ensureStatus(await charge.send({ key: `014aa2b1-0000-7${charge.key.slice(15, 18)}-8${charge.key.slice(20)}` }), { words, is: ['expired'] }, 'the old key');
      await ensureRuns(charge, 0);
    },
  },
  {
    id: '54d',
    name: 'an answer that expires before its key is not given, and its request does not run again',
    needs: ['time'],
    config: { keyRetention: 10 * 86_400_000 },
    async run({ scenario, retention, margin, advance, words }) {
      const charge = scenario();
      await charge.send();
      await advance(retention + margin);
      ensureStatus(await charge.send(), { words, is: ['gone'] }, 'the repeat');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '54e',
    name: 'the repeat is told that the answer has expired, and what it was',
    needs: ['time'],
    config: { keyRetention: 10 * 86_400_000 },
    wording: true,
    async run({ scenario, retention, margin, advance }) {
      const charge = scenario();
      await charge.send();
      await advance(retention + margin);
      ensureMembers(await charge.send(), { code: 'idempotency_result_expired', original_status: 201, safe_new_key: false }, 'what the document says');
    },
  },
  {
    id: '54f',
    name: 'a purge deletes what has expired, and neither a live run nor its protection',
    needs: ['time', 'purge'],
    async run(stage) {
      const { scenario, retention, margin, advance, words } = stage;
      const charge = scenario();
      for (let round = 0; round < PURGES; round += 1) {
        for (let index = 0; index < 10; index += 1) await charge.send({ key: `${charge.key}-${round}-${index}` });
        await advance(retention + margin);
        ensureEqual(await purgeAll(stage), 10, 'each round leaves as many as it made');
      }
      const live = scenario({ hold: true }, {});
      const { answer: running } = await startHeld(live);
      ensureEqual(await purgeAll(stage), 0, 'a live run is no prey');
      if (words.duplicates === 'refused') ensureStatus(await live.send(), { words, is: ['inProgress'] }, 'its duplicate');
      await live.release();
      ensureEqual((await running).status, 201, 'it is answered');
      await live.send();
      await ensureRuns(live, 1);
    },
  },
  {
    id: '54g',
    name: 'a purge turns no unknown outcome into a fresh key',
    needs: ['time', 'purge', 'crash', 'second server'],
    unless: ['tx'],
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      await startHeld(charge);
      await stage.server.crash?.();
      await stage.advance(stage.retention + stage.lease + stage.margin);
      await purgeAll(stage);
      ensureStatus(await charge.send({ to: await stage.open() }), { words: stage.words, is: ['indeterminate'] }, 'a repeat');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '55a',
    name: 'a purge of many expired records goes on in steps, and claims are answered between them',
    needs: ['bulk', 'purge'],
    async run(stage) {
      await stage.subject.fill?.(stage.bulk);
      const charge = stage.scenario();
      let deleted = 0;
      let answered = 0;
      for (let more = true; more;) {
        const step = stage.subject.purge?.();
        const answer = await charge.send({ key: `${charge.key}-${answered}` });
        ensureEqual(answer.status, 201, 'a claim during a step is answered');
        answered += 1;
        const report = await step;
        deleted += report?.deleted ?? 0;
        more = report?.more ?? false;
      }
      ensureEqual(deleted, stage.bulk, 'all that had expired are deleted');
      ensure(answered > 1, `it took several steps\n  found    ${answered}`);
    },
  },
  ...SKEWS_MS.map((skew, index) => skewed(skew, `56${'ab'.charAt(index)}`)),
  {
    id: '57c',
    name: 'unknown outcomes and expired keys have codes of their own',
    needs: ['time', 'crash', 'second server'],
    unless: ['tx'],
    config: { onExpired: 'refuse' },
    wording: true,
    async run({ scenario, server, advance, lease, retention, margin, open }) {
      const old = scenario();
      await old.send();
      const dead = scenario({ hold: true }, {});
      await startHeld(dead);
      await server.crash?.();
      await advance(lease + margin);
      const next = await open();
      const doubt = codeOf(await dead.send({ to: next }));
      await advance(retention);
      ensureEqual([doubt, codeOf(await old.send({ to: next }))], ['idempotency_indeterminate', 'idempotency_key_expired'], 'the codes');
    },
  },
];
