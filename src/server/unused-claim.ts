import type { Clock } from '../clock.js';
import type { Claim } from './record.js';
import type { DedupStore } from './store.js';

/** ms before each try: a store that comes back does so within seconds, as a rule; later the lease ends by itself, into doubt. */
const TRIES_MS: readonly number[] = [100, 500, 1_000, 3_000];

/**
 * Frees a key that may have been claimed although every answer to the claim got lost: nobody will run under it, and only
 * this process knows. Never rejects.
 */
export const releaseUnused = async (store: DedupStore, clock: Clock, claim: Claim): Promise<void> => {
  for (const delay of TRIES_MS) {
    await clock.sleep(delay, undefined, true);
    try {
      const row = await store.get(claim);
      if (row?.owner !== claim.owner || row.state !== 'in_progress') return;
      await store.settle({ ...claim, fence: row.fence }, { to: 'retryable', keepFingerprint: true, keyRetention: claim.keyRetention });
      return;
    } catch {
      // Asked again.
    }
  }
};
