import type { Claim, DedupStore } from '../../../src/server/index.js';

/** Calls at once; more would only queue up in the store's connections. */
const BATCH = 50;

const claimOf = (index: number): Claim => ({
  scope: 'filled', key: String(index), fingerprint: 'v1:sha256:aa', owner: `o-${index}`, operationRef: `ref-${index}`, lease: 1_000, keyRetention: 0,
  effects: 'external', onExpired: 'fresh',
});

const put = async (store: DedupStore, index: number): Promise<void> => {
  const claim = claimOf(index);
  const claimed = await store.claim(claim);
  if (claimed.kind !== 'won') throw new Error(`The key ${claim.key} is there already (${claimed.kind}); fill an empty store only.`);
  const answer = { status: 201, headers: [], body: null };
  await store.settle({ ...claim, fence: claimed.fence }, { to: 'completed', answer, retention: 0, keyRetention: 0 });
};

/** Puts records into a store that have expired already. */
export const fill = async (store: DedupStore, count: number): Promise<void> => {
  for (let from = 0; from < count; from += BATCH) {
    await Promise.all(Array.from({ length: Math.min(BATCH, count - from) }, (_, offset) => put(store, from + offset)));
  }
};
