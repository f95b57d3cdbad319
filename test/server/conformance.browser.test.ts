import { indexedDBDedupStore } from '../../src/server/stores/indexeddb.js';
import { manualClock } from '../support/manual-clock.js';
import { describeConformance } from './conformance/suite.js';
import { dropDatabase, freshName } from './databases.js';

describeConformance('IndexedDB', () => {
  const clock = manualClock();
  const name = freshName();
  const store = indexedDBDedupStore({ name, clock });
  return {
    store,
    clock,
    async dispose() {
      await store.close();
      await dropDatabase(name);
    },
  };
});
