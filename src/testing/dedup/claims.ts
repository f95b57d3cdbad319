import { ensure, ensureEqual } from '../check.js';
import { answerOf, claimOf, completed, kindsOf, LEASE, race, released, win, type DedupStoreCase } from './subject.js';

/** Who gets to run, and what the others are told. */
export const claimCases: readonly DedupStoreCase[] = [
  {
    name: 'the first claim of a key wins with fence 1',
    async run({ store }) {
      ensureEqual(await store.claim(claimOf('a')), { kind: 'won', fence: 1, attempt: 1, operationRef: 'ref-a' }, 'the claim wins');
    },
  },
  {
    name: 'of 50 claims at once exactly one wins',
    async run({ store }) {
      const results = await race(store, 50);
      ensureEqual(kindsOf(results), { won: 1, 'in-progress': 49 }, 'one run, 49 are told to wait');
      for (const result of results) {
        if (result.kind === 'in-progress') ensure(result.leaseLeft > 0 && result.leaseLeft <= LEASE, 'what is left of the lease is within it');
      }
    },
  },
  {
    name: 'the owner that repeats its claim has won it, once',
    async run({ store }) {
      await win(store, 'a');
      ensureEqual(await store.claim(claimOf('a')), { kind: 'won', fence: 1, attempt: 1, operationRef: 'ref-a' }, 'the same run');
    },
  },
  {
    name: 'another fingerprint is key reuse, also while the first runs, and changes nothing',
    async run({ store }) {
      const hold = await win(store, 'a');
      const other = claimOf('b', { fingerprint: 'v1:sha256:bb' });
      ensureEqual(await store.claim(other), { kind: 'key-reused', safeNewKey: false, operationRef: 'ref-a' }, 'reuse while it runs');
      await store.settle(hold, completed());
      ensureEqual(await store.claim(other), { kind: 'key-reused', safeNewKey: false, operationRef: 'ref-a' }, 'reuse after a success');
      ensureEqual((await store.claim(claimOf('c'))).kind, 'completed', 'the first request still has its answer');
    },
  },
  {
    name: 'key reuse after a refusal says that a new key is safe',
    async run({ store }) {
      await store.settle(await win(store, 'a'), completed(answerOf({ status: 422 })));
      const result = await store.claim(claimOf('b', { fingerprint: 'v1:sha256:bb' }));
      ensureEqual(result, { kind: 'key-reused', safeNewKey: true, operationRef: 'ref-a' }, 'a new key is safe');
    },
  },
  {
    name: 'a fingerprint of another algorithm is not reuse',
    async run({ store }) {
      await store.settle(await win(store, 'a'), completed());
      ensureEqual((await store.claim(claimOf('b', { fingerprint: 'v2:sha256:cc' }))).kind, 'completed', 'it cannot be compared, so it is the same request');
    },
  },
  {
    name: 'a release keeps the fingerprint or clears it, as told, and the next claim has a higher fence',
    async run({ store }) {
      await store.settle(await win(store, 'a'), released(true));
      ensureEqual((await store.claim(claimOf('b', { fingerprint: 'v1:sha256:bb' }))).kind, 'key-reused', 'kept');
      const again = await store.claim(claimOf('c'));
      ensureEqual(again, { kind: 'won', fence: 2, attempt: 2, operationRef: 'ref-a' }, 'the same request runs again');
      await store.settle({ scope: 'shop', key: 'k1', owner: 'c', fence: 2 }, released(false));
      ensureEqual((await store.claim(claimOf('d', { fingerprint: 'v1:sha256:bb' }))).kind, 'won', 'cleared');
    },
  },
  {
    name: 'a stored answer comes back byte by byte, with its headers in order',
    async run({ store }) {
      const bodies = [new Uint8Array([0, 255, 128, 254]), new Uint8Array(0), null, new TextEncoder().encode('\uFEFF{"z":1, "a":1.0,"a":2}\r\n\0')];
      for (const [index, body] of bodies.entries()) {
        const key = `body-${index}`;
        const answer = answerOf({ body, headers: [['link', '</a>'], ['link', '</b>'], ['etag', '"é"']] });
        await store.settle(await win(store, 'a', { key }), completed(answer));
        ensureEqual(await store.claim(claimOf('b', { key })), { kind: 'completed', answer, operationRef: 'ref-a' }, `body ${index} is the same`);
      }
    },
  },
  {
    name: 'keys and scopes are compared exactly and never run into each other',
    async run({ store }) {
      const refs = [['a', 'bc'], ['ab', 'c'], ['a:', 'b'], ['a', ':b'], ['A', 'bc'], ['a', 'BC'], ['a', "'; DROP TABLE keys;--"], ['a', '%'], ['a', '*'], ['a', 'b/c'], ['a', '\\n']] as const;
      for (const [scope, key] of refs) ensureEqual((await store.claim(claimOf('a', { scope, key }))).kind, 'won', `(${scope}, ${key}) is a key of its own`);
    },
  },
];
