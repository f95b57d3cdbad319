import { describe, expect, it } from 'vitest';
import { mortalStore } from '../../src/msw/mortal-store.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { claimOf, completed, win } from '../../src/testing/dedup/subject.js';

/** Whether a promise has settled by now. */
const hasSettled = async (promise: Promise<unknown>): Promise<boolean> => {
  const turns = new Promise(resolve => setTimeout(resolve, 20)).then(() => false);
  return Promise.race([promise.then(() => true), turns]);
};

describe('mortalStore', () => {
  it('is the store as long as its process lives', async () => {
    const store = mortalStore(memoryDedupStore(), new AbortController().signal);
    const hold = await win(store, 'a');
    expect(await store.renew(hold, 1_000, false)).toBe(true);
    expect(await store.settle(hold, completed())).toBe(true);
    expect((await store.get(hold))?.state).toBe('completed');
  });

  it('lets a dead process say nothing', async () => {
    const shared = memoryDedupStore();
    const death = new AbortController();
    const store = mortalStore(shared, death.signal);
    const hold = await win(store, 'a');
    death.abort();
    expect(await hasSettled(store.settle(hold, completed()))).toBe(false);
    expect((await shared.get(hold))?.state).toBe('in_progress');
  });

  it('lets a process that dies during a call hear nothing of it, though it was done', async () => {
    const shared = memoryDedupStore();
    const death = new AbortController();
    const claimed = mortalStore(shared, death.signal).claim(claimOf('a'));
    death.abort();
    expect(await hasSettled(claimed)).toBe(false);
    expect((await shared.get({ scope: 'shop', key: 'k1' }))?.owner).toBe('a');
  });
});
