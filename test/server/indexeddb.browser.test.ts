import { describe, expect, it } from 'vitest';
import { indexedDBDedupStore } from '../../src/server/stores/indexeddb.js';
import { describeDedupStore } from '../../src/testing/dedup-store.js';
import { claimOf, kindsOf, race } from '../../src/testing/dedup/subject.js';
import { manualClock } from '../support/manual-clock.js';
import { freshName, dropDatabase } from './databases.js';

describeDedupStore({ describe, it }, 'indexedDBDedupStore', () => {
  const clock = manualClock();
  const name = freshName();
  const store = indexedDBDedupStore({ name, clock });
  return {
    store,
    pass: ms => clock.advance(ms),
    async dispose() {
      await store.close();
      await dropDatabase(name);
    },
  };
});

describe('indexedDBDedupStore', () => {
  it('is one table for all pages that open it', async () => {
    const name = freshName();
    const pages = Array.from({ length: 5 }, () => indexedDBDedupStore({ name }));
    const results = (await Promise.all(pages.map(page => race(page, 10)))).flat();
    // Owners repeat from page to page, so a winner's namesake is told that it has won too: count the fences.
    expect(kindsOf(results)['in-progress']).toBe(45);
    expect(new Set(results.flatMap(result => (result.kind === 'won' ? [result.fence] : [])))).toEqual(new Set([1]));
    await Promise.all(pages.map(page => page.close()));
    await dropDatabase(name);
  });

  it('keeps rows and journal after it was closed, and forgets both when it is cleared', async () => {
    const name = freshName();
    const before = indexedDBDedupStore({ name });
    await before.claim(claimOf('a'));
    await before.journal.append({ line: 1 });
    await before.journal.append({ line: 2 });
    await before.close();
    const after = indexedDBDedupStore({ name });
    expect((await after.claim(claimOf('b'))).kind).toBe('in-progress');
    expect(await after.journal.read()).toEqual([{ line: 1 }, { line: 2 }]);
    await after.clear();
    expect((await after.claim(claimOf('c'))).kind).toBe('won');
    expect(await after.journal.read()).toEqual([]);
    await after.close();
    await dropDatabase(name);
  });
});
