import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { describeConformance } from './conformance/suite.js';

describeConformance('memory', () => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
});
