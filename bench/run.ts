import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** In the order of how long they take. Each is a script of its own and prints its figures beside their goals. */
const BENCHES = ['size.ts', 'cpu.ts', 'keystore/file.ts', 'keystore/indexeddb.ts', 'engine/engine.ts'];

const loader = new URL('../tools/resolve-ts.ts', import.meta.url).href;

for (const bench of BENCHES) {
  console.log(`\n== bench/${bench}`);
  // One process each, so that no bench runs on the heap and the compiled code of another.
  const file = fileURLToPath(new URL(bench, import.meta.url));
  const { status } = spawnSync(process.execPath, ['--import', loader, file], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
