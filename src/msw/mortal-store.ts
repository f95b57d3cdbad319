import type { DedupStore } from '../server/store.js';

const silence = new Promise<never>(() => {});

/**
 * A store as a process sees it that is dead once `death` aborts: it says nothing any more and hears nothing any more.
 * What it has claimed stays claimed until the lease ends, as after `kill -9`.
 */
export const mortalStore = (store: DedupStore, death: AbortSignal): DedupStore => {
  const mortal = async <T>(call: () => Promise<T>): Promise<T> => {
    const result = death.aborted ? await silence : await call();
    return death.aborted ? silence : result;
  };
  return {
    claim: claim => mortal(() => store.claim(claim)),
    renew: (hold, lease, effectStarted) => mortal(() => store.renew(hold, lease, effectStarted)),
    settle: (hold, settlement) => mortal(() => store.settle(hold, settlement)),
    resolve: (ref, resolution) => mortal(() => store.resolve(ref, resolution)),
    get: ref => mortal(() => store.get(ref)),
    purge: options => mortal(() => store.purge(options)),
  };
};
