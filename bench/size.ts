import { bundle, LIBRARIES, WHOLE_CLIENT } from './bundle.js';
import type { Bundle } from './bundle.js';

/** gzip bytes; kB is 1,000 bytes. */
interface Line {
  readonly what: string;
  readonly code: string;
  readonly external?: readonly string[];
  readonly goal?: number;
}

const LINES: readonly Line[] = [
  { what: 'whole client, default profile, IndexedDB store', code: WHOLE_CLIENT },
  { what: '  the same without ky, uuid, idb-keyval', code: WHOLE_CLIENT, external: LIBRARIES, goal: 7_500 },
  { what: '  createClient alone, without the three', code: `import { createClient } from './src/index.js'; console.log(createClient);`, external: LIBRARIES },
  { what: '  ky, uuid, idb-keyval as the client uses them', code: `import ky from 'ky'; import { v5, v7, validate } from 'uuid'; import { promisifyRequest } from 'idb-keyval'; console.log(ky, v5, v7, validate, promisifyRequest);` },
  { what: 'IndexedDB store alone, without the three', code: `import { indexedDBKeyStore } from './src/keystore/indexeddb.js'; console.log(indexedDBKeyStore);`, external: LIBRARIES, goal: 1_500 },
  { what: 'one more profile (stripe)', code: `import { stripe } from './src/profiles/index.js'; console.log(stripe);` },
  { what: 'mock (dev only), without msw', code: `import * as mock from './src/msw/index.js'; console.log(mock);`, external: [...LIBRARIES, 'msw'] },
];

const kB = (bytes: number): string => (bytes / 1_000).toFixed(2).padStart(8);
const verdict = ({ gzip }: Bundle, goal: number | undefined): string =>
  goal === undefined ? '' : `${kB(goal)}  ${gzip <= goal ? 'met' : `MISSED by ${gzip - goal} bytes`}`;

const width = Math.max(...LINES.map(({ what }) => what.length));
console.log(`${'kB'.padEnd(width)}${'min'.padStart(8)}${'gzip'.padStart(8)}${'brotli'.padStart(8)}${'goal'.padStart(8)}`);
for (const { what, code, external, goal } of LINES) {
  const result = await bundle(code, external);
  console.log(`${what.padEnd(width)}${kB(result.min)}${kB(result.gzip)}${kB(result.brotli)}${verdict(result, goal)}`);
}

const { parts } = await bundle(WHOLE_CLIENT, LIBRARIES);
console.log('\nParts of the whole client without the three, minified bytes:');
for (const [path, bytes] of [...parts].toSorted(([, a], [, b]) => b - a)) console.log(`${String(bytes).padStart(8)}  ${path}`);
const foreign = [...parts.keys()].filter(path => /^src\/profiles\/(?!profile\.ts|ietf\.ts)/.test(path));
console.log(foreign.length === 0 ? '\nUnused profiles shake out.' : `\nUnused profiles stay in: ${foreign.join(', ')}`);
