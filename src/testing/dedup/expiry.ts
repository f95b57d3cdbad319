import { ensure, ensureEqual } from '../check.js';
import { answerOf, claimOf, completed, DAY, HOUR, kindsOf, LEASE, race, released, win, type DedupStoreCase } from './subject.js';

const ref = { scope: 'shop', key: 'k1' };

/** How keys get old, and how the table stays small. */
export const expiryCases: readonly DedupStoreCase[] = [
  {
    name: 'a key is remembered until its last millisecond and fresh after it, though nobody purged',
    async run({ store, pass, drift = 0 }) {
      await store.settle(await win(store, 'a'), completed());
      await pass(DAY - 1 - drift);
      ensureEqual((await store.claim(claimOf('b'))).kind, 'completed', 'one millisecond before');
      await pass(2 + drift);
      ensureEqual(await store.claim(claimOf('c')), { kind: 'won', fence: 2, attempt: 1, operationRef: 'ref-c' }, 'one millisecond after');
    },
  },
  {
    name: 'C72: an expired key that nobody purged runs once under 20 claims at once, for the same request and for another',
    async run({ store, pass }) {
      for (const key of ['same', 'other']) await store.settle(await win(store, 'a', { key }), completed());
      await pass(DAY + 1);
      ensureEqual(kindsOf(await race(store, 20, { key: 'same' })), { won: 1, 'in-progress': 19 }, 'one run of the same request');
      ensureEqual(kindsOf(await race(store, 20, { key: 'other', fingerprint: 'v1:sha256:bb' })), { won: 1, 'in-progress': 19 }, 'one run of another, no reuse');
    },
  },
  {
    name: 'an expired key is refused where it is not to run again',
    async run({ store, pass }) {
      await store.settle(await win(store, 'a'), completed());
      await pass(DAY + 1);
      const result = await store.claim(claimOf('b', { onExpired: 'refuse' }));
      ensureEqual(result, { kind: 'key-expired', originalStatus: 201, operationRef: 'ref-a' }, 'refused');
    },
  },
  {
    name: 'an answer may expire before its key: what happened is still known, and is not repeated',
    async run({ store, pass }) {
      await store.settle(await win(store, 'a'), completed(answerOf(), HOUR, DAY));
      await pass(HOUR + 1);
      const wanted = { kind: 'completed', answer: { status: 201, headers: [], body: null, omitted: 'expired' }, operationRef: 'ref-a' };
      ensureEqual(await store.claim(claimOf('b')), wanted, 'without its body');
      const report = await store.purge();
      ensureEqual([report.bodiesDropped, report.deleted], [1, 0], 'the purge drops the body only');
      ensureEqual((await store.get(ref))?.answer?.body, null, 'it is gone');
      ensureEqual(await store.claim(claimOf('c')), wanted, 'a repeat is told the same');
    },
  },
  {
    name: 'a purge deletes what is expired, in batches, and leaves the rest',
    async run({ store, pass }) {
      for (let index = 0; index < 5; index += 1) await store.settle(await win(store, 'a', { key: `old-${index}` }), index % 2 ? released(true) : completed());
      await pass(DAY / 2);
      await store.settle(await win(store, 'a', { key: 'young' }), completed());
      await pass(DAY / 2 + 1);
      const first = await store.purge({ limit: 3 });
      ensureEqual([first.deleted, first.more], [3, true], 'as many as the limit');
      const second = await store.purge({ limit: 3 });
      ensureEqual([second.deleted, second.more], [2, false], 'the rest');
      ensureEqual(await store.get({ scope: 'shop', key: 'old-4' }), undefined, 'deleted');
      ensureEqual((await store.claim(claimOf('b', { key: 'young' }))).kind, 'completed', 'kept');
    },
  },
  {
    name: 'a purge never removes a run that goes on, however old its claim is',
    async run({ store, pass }) {
      const hold = await win(store, 'a', { keyRetention: HOUR });
      await pass(2 * HOUR);
      ensure(await store.renew(hold, LEASE, false), 'it lives');
      const report = await store.purge();
      ensureEqual([report.deleted, report.doubted], [0, 0], 'untouched');
      ensure(await store.settle(hold, completed()), 'it ends');
      ensureEqual((await store.claim(claimOf('b'))).kind, 'completed', 'and is stored');
    },
  },
  {
    name: 'a run that died long ago turns into doubt, never into a fresh key, whatever its effects',
    async run({ store, pass }) {
      await win(store, 'a', { effects: 'idempotent' });
      await pass(DAY + 1);
      ensureEqual((await store.claim(claimOf('b', { effects: 'idempotent' }))).kind, 'indeterminate', 'a claim finds doubt');
      await win(store, 'a', { key: 'k2' });
      await pass(DAY + 1);
      const report = await store.purge();
      ensureEqual([report.deleted, report.doubted, report.indeterminate], [0, 1, 2], 'a purge finds it too');
    },
  },
  {
    name: 'doubt is purged only by explicit order',
    async run({ store, pass }) {
      await store.settle(await win(store, 'a'), { to: 'indeterminate', reason: 'test' });
      await pass(365 * DAY);
      const kept = await store.purge();
      ensureEqual([kept.deleted, kept.indeterminate], [0, 1], 'kept, and counted');
      ensure(kept.oldestIndeterminateAt !== undefined, 'with its age');
      const given = await store.purge({ dropIndeterminateAfter: 30 * DAY });
      ensureEqual([given.deleted, given.indeterminate], [1, 0], 'given up');
      ensureEqual(await store.get(ref), undefined, 'deleted');
    },
  },
];
