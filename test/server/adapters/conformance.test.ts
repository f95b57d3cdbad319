import { describe, it } from 'vitest';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';
import { describeConformance } from '../../../src/testing/conformance.js';
import { manualClock } from '../../support/manual-clock.js';
import { bePatient } from '../../support/patience.js';
import { overExpress, overExpressAfterParser } from '../support/serve-express.js';
import { overFastify, overHijackedFastify } from '../support/serve-fastify.js';
import { dedupTarget, type Serve, type StoreStage } from '../support/targets.js';

bePatient();

const create = (): StoreStage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

const ways: Record<string, Serve> = {
  'Express': overExpress,
  'Express after a body parser': overExpressAfterParser,
  'Fastify': overFastify,
  'Fastify, hijacked': overHijackedFastify,
};

for (const [name, serve] of Object.entries(ways)) describeConformance({ describe, it }, dedupTarget(`memory over ${name}`, create, { serve }));
