import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { describeStoreModel } from './model/suite.js';

describeStoreModel('memoryDedupStore', () => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), pass: ms => clock.advance(ms) };
}, { stories: 500 });
