import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { conformance, conformanceTable, type ConformanceResult, type ConformanceTarget } from '../../src/testing/conformance.js';
import { overExpress } from '../../test/server/support/serve-express.js';
import { dedupTarget, type StoreStage } from '../../test/server/support/targets.js';
import { manualClock } from '../../test/support/manual-clock.js';
import type { PeerTarget } from './peer.js';
import { expressIdempotency } from './targets/express-idempotency.js';
import { nodeIdempotency } from './targets/node-idempotency.js';
import { powertools } from './targets/powertools.js';
import { samekeyOnPostgres } from './targets/samekey-postgres.js';
import { steadykey } from './targets/steadykey.js';

const memory = (): StoreStage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

const ours = (name: string, target: ConformanceTarget): PeerTarget => ({ target, configured: `${name}; lease 30 s and retention 24 h on a clock that the case moves` });

const OURS: readonly PeerTarget[] = [
  ours('dedup.handle in process, memory store', dedupTarget('samekey', memory)),
  ours('idempotent() on Express, memory store', dedupTarget('samekey on Express', memory, { serve: overExpress })),
];

const OTHERS: readonly PeerTarget[] = [steadykey, nodeIdempotency, expressIdempotency, powertools];

const only = process.argv.slice(2);

const postgres = await samekeyOnPostgres();
if (postgres.absent) console.error(`samekey on PostgreSQL is not tried: ${postgres.absent}`);

const all = [...OURS, ...(postgres.peer ? [postgres.peer] : []), ...OTHERS];
const wanted = all.filter(({ target: { name } }) => only.length === 0 || only.includes(name));
if (wanted.length === 0) console.error(`No target is called ${only.join(' or ')}. There are: ${all.map(({ target: { name } }) => `'${name}'`).join(', ')}.`);

const columns: Record<string, readonly ConformanceResult[]> = {};
for (const { target } of wanted) {
  const start = performance.now();
  console.error(`${target.name} …`);
  columns[target.name] = await conformance(target);
  console.error(`${target.name}: ${Math.round((performance.now() - start) / 1_000)} s`);
}
await postgres.close?.();

console.log(conformanceTable(columns));

console.log('\nHow each was mounted');
for (const { target, configured } of wanted) console.log(`- ${target.name}: ${configured}`);

for (const outcome of ['failed', 'skipped'] as const) {
  console.log(`\nFacts that ${outcome === 'failed' ? 'do not hold' : 'were not tried'}, and why`);
  for (const [name, results] of Object.entries(columns)) {
    for (const result of results.filter(each => each.outcome === outcome)) console.log(`- ${name}, ${result.name}: ${result.reason?.replaceAll('\n', ' ')}`);
  }
}
