import { describe, it } from 'vitest';
import { indexedDBDedupStore } from '../../src/server/stores/indexeddb.js';
import { describeConformance } from '../../src/testing/conformance.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { dropDatabase, freshName } from './databases.js';
import { dedupTarget, type StoreStage } from './support/targets.js';

bePatient();

const create = (): StoreStage => {
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
};

describeConformance({ describe, it }, dedupTarget('IndexedDB', create, {
  without: ['cors'],
  cannot: { cors: 'a script of a browser may not say from which origin it comes' },
  skip: [{ case: '5a', reason: 'a browser keeps Set-Cookie from scripts' }],
}));
