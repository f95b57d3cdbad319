import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { conformance, conformanceTable, type ConformanceResult, type ConformanceTarget } from '../../src/testing/conformance.js';
import { overExpress } from '../../test/server/support/serve-express.js';
import { dedupTarget, type StoreStage } from '../../test/server/support/targets.js';
import { manualClock } from '../../test/support/manual-clock.js';
import type { PeerTarget } from './peer.js';
import { expressIdempotency } from './targets/express-idempotency.js';
import { nodeIdempotency } from './targets/node-idempotency.js';
import { powertools } from './targets/powertools.js';
import { steadykey } from './targets/steadykey.js';

const memory = (): StoreStage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

const ours = (name: string, target: ConformanceTarget): PeerTarget => ({ target, configured: `${name}; lease 30 s and retention 24 h on a clock that the case moves` });

const TARGETS: readonly PeerTarget[] = [
  ours('dedup.handle in process, memory store', dedupTarget('samekey', memory)),
  ours('idempotent() on Express, memory store', dedupTarget('samekey on Express', memory, { serve: overExpress })),
  steadykey, nodeIdempotency, expressIdempotency, powertools,
];

const only = process.argv.slice(2);

const columns: Record<string, readonly ConformanceResult[]> = {};
for (const { target } of TARGETS.filter(({ target: { name } }) => only.length === 0 || only.includes(name))) columns[target.name] = await conformance(target);

console.log(conformanceTable(columns));

console.log('\nHow each was mounted');
for (const { target, configured } of TARGETS) if (columns[target.name]) console.log(`- ${target.name}: ${configured}`);

for (const outcome of ['failed', 'skipped'] as const) {
  console.log(`\nFacts that ${outcome === 'failed' ? 'do not hold' : 'were not tried'}, and why`);
  for (const [name, results] of Object.entries(columns)) {
    for (const result of results.filter(each => each.outcome === outcome)) console.log(`- ${name}, ${result.name}: ${result.reason?.replaceAll('\n', ' ')}`);
  }
}
