import type { ClaimResult } from '../../server/record.js';
import { ensure, ensureEqual } from '../check.js';
import { answerOf, claimOf, completed, DAY, kindsOf, LEASE, race, released, win, type DedupStoreCase } from './subject.js';

const ref = { scope: 'shop', key: 'k1' };

/** Enough for either to come first now and then. */
const ROUNDS = 10;

/** What becomes of runs whose worker is slow or dead. */
export const leaseCases: readonly DedupStoreCase[] = [
  {
    name: 'a run that died is doubted when its effects are external',
    async run({ store, pass }) {
      await win(store, 'a');
      await pass(LEASE + 1);
      ensureEqual(await store.claim(claimOf('b')), { kind: 'indeterminate', operationRef: 'ref-a' }, 'nobody knows');
      ensureEqual(await store.claim(claimOf('c', { effects: 'idempotent' })), { kind: 'indeterminate', operationRef: 'ref-a' }, 'doubt stays');
    },
  },
  {
    name: 'a run that died is taken over by exactly one of many when its effects are idempotent',
    async run({ store, pass }) {
      await win(store, 'a');
      await pass(LEASE + 1);
      const results = await race(store, 20, { effects: 'idempotent' });
      ensureEqual(kindsOf(results), { won: 1, 'in-progress': 19 }, 'one takes over');
      const winner = results.find(({ kind }) => kind === 'won');
      ensureEqual(winner, { kind: 'won', fence: 2, attempt: 2, operationRef: 'ref-a' }, 'with a higher fence');
    },
  },
  {
    name: 'C68: what is left of a dead run’s lease is told until it ends, then exactly one of 20 takes over',
    async run({ store, pass, drift = 0 }) {
      await win(store, 'a');
      const left = 15_000;
      await pass(LEASE - left);
      for (const result of await race(store, 5, { effects: 'idempotent' })) {
        ensure(result.kind === 'in-progress' && result.leaseLeft <= left && result.leaseLeft >= left - drift, 'no more than what is left of it');
      }
      await pass(left + 1);
      ensureEqual(kindsOf(await race(store, 20, { effects: 'idempotent' })), { won: 1, 'in-progress': 19 }, 'one takes over');
    },
  },
  {
    name: 'C70: of the late end of a run and its takeover at once, exactly one counts',
    async run({ store, pass }) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const key = `k-${round}`;
        const late = await win(store, 'late', { key });
        await pass(LEASE + 1);
        const takeOver = (): Promise<ClaimResult[]> => race(store, 3, { key, effects: 'idempotent' });
        // Each begins in half of the rounds.
        const early = round % 2 === 0 ? takeOver() : undefined;
        const [ended, claims] = await Promise.all([store.settle(late, completed()), early ?? takeOver()]);
        ensureEqual(kindsOf(claims), ended ? { completed: 3 } : { won: 1, 'in-progress': 2 }, 'three replays of its answer, or one takeover');
        ensureEqual(await store.settle(late, completed()), ended, 'and so it stays');
      }
    },
  },
  {
    name: 'a run that died with marked effects runs again only if none had started',
    async run({ store, pass }) {
      await win(store, 'a', { key: 'quiet' });
      const loud = await win(store, 'a', { key: 'loud' });
      ensure(await store.renew(loud, LEASE, true), 'the mark is accepted');
      ensure(await store.renew(loud, LEASE, false), 'a later renewal keeps it');
      await pass(LEASE + 1);
      ensureEqual((await store.claim(claimOf('b', { key: 'quiet', effects: 'marked' }))).kind, 'won', 'nothing had started');
      ensureEqual((await store.claim(claimOf('b', { key: 'loud', effects: 'marked' }))).kind, 'indeterminate', 'an effect had started');
    },
  },
  {
    name: 'a renewal extends the lease from now',
    async run({ store, pass, drift = 0 }) {
      const hold = await win(store, 'a');
      await pass(LEASE - 10 - drift);
      ensure(await store.renew(hold, LEASE, false), 'it still holds');
      await pass(LEASE - 10 - drift);
      ensureEqual((await store.claim(claimOf('b', { effects: 'idempotent' }))).kind, 'in-progress', 'it is still alive');
    },
  },
  {
    name: 'a stale owner can change nothing',
    async run({ store, pass }) {
      const stale = await win(store, 'a');
      await pass(LEASE + 1);
      const fresh = await win(store, 'b', { effects: 'idempotent' });
      ensure(!(await store.renew(stale, LEASE, false)), 'its renewal is refused');
      ensure(!(await store.settle(stale, released(false))), 'its failure is refused');
      ensure(await store.settle(fresh, completed(answerOf({ status: 202 }))), 'the new owner ends it');
      ensure(!(await store.settle(stale, completed())), 'its late answer is refused');
      const result = await store.claim(claimOf('c'));
      ensure(result.kind === 'completed' && result.answer.status === 202, 'the answer is the new owner’s');
    },
  },
  {
    name: 'an owner that outlived its lease without a rival ends its run',
    async run({ store, pass }) {
      const hold = await win(store, 'a');
      await pass(LEASE * 3);
      ensure(await store.settle(hold, completed()), 'accepted');
      ensureEqual((await store.claim(claimOf('b'))).kind, 'completed', 'stored');
    },
  },
  {
    name: 'the late answer of the run in doubt ends the doubt, its late failure does not',
    async run({ store, pass }) {
      const hold = await win(store, 'a');
      await pass(LEASE + 1);
      await store.claim(claimOf('b'));
      ensure(!(await store.settle(hold, released(true))), 'a failure proves nothing');
      ensure(!(await store.renew(hold, LEASE, false)), 'it holds nothing');
      ensure(await store.settle(hold, completed()), 'an answer is the truth');
      ensureEqual((await store.claim(claimOf('c'))).kind, 'completed', 'stored');
    },
  },
  {
    name: 'a settlement that is repeated because its answer got lost is accepted again',
    async run({ store }) {
      const hold = await win(store, 'a');
      ensure(await store.settle(hold, completed()), 'first');
      ensure(await store.settle(hold, completed()), 'second');
    },
  },
  {
    name: 'doubt ends by resolving it as applied, and only once',
    async run({ store, pass }) {
      const hold = await win(store, 'a');
      ensure(!(await store.resolve(ref, completed() as never)), 'a live run is not in doubt');
      await pass(LEASE + 1);
      ensure(await store.resolve(ref, { to: 'completed', answer: answerOf(), retention: DAY, keyRetention: DAY }), 'a dead run is');
      ensure(!(await store.resolve(ref, { to: 'retryable', keyRetention: DAY })), 'not twice');
      ensure(!(await store.settle(hold, released(true))), 'the old run may not free the key any more');
      ensure(!(await store.settle(hold, completed(answerOf({ status: 202 })))), 'nor believe that its own answer is the stored one');
      const result = await store.claim(claimOf('b'));
      ensure(result.kind === 'completed' && result.answer.status === 201, 'a repeat gets the answer that was found out');
    },
  },
  {
    name: 'doubt ends by resolving it as not applied: the same request runs again',
    async run({ store }) {
      const hold = await win(store, 'a');
      await store.settle(hold, { to: 'indeterminate', reason: 'test' });
      ensureEqual((await store.claim(claimOf('b'))).kind, 'indeterminate', 'in doubt');
      ensure(await store.resolve(ref, { to: 'retryable', keyRetention: DAY }), 'resolved');
      ensureEqual((await store.claim(claimOf('c', { fingerprint: 'v1:sha256:bb' }))).kind, 'key-reused', 'for the same request only');
      ensureEqual((await store.claim(claimOf('d'))).kind, 'won', 'it runs again');
      ensure(!(await store.settle(hold, completed())), 'the old run may not speak any more');
    },
  },
];
