import { describe, it } from 'vitest';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { describeConformance } from '../../src/testing/conformance.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { overNode } from './support/serve-node.js';
import { dedupTarget, type StoreStage } from './support/targets.js';

bePatient();

const create = (): StoreStage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

describeConformance({ describe, it }, dedupTarget('memory', create));
describeConformance({ describe, it }, dedupTarget('memory over node:http', create, { serve: overNode }));
