import { describe, it } from 'vitest';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { describeDedupStore } from '../../src/testing/dedup-store.js';
import { manualClock } from '../support/manual-clock.js';

describeDedupStore({ describe, it }, 'memoryDedupStore', () => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), pass: ms => clock.advance(ms) };
});
