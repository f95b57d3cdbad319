import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import type { Tally } from './tally-reporter.js';

/** A step runs after the ones before it whatever became of them, so that one run tells everything that is wrong. */
interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** The step is a run of vitest, which counts its own tests. Any other step counts as one check. */
  readonly tests?: true;
  /** Says much when all is well, so it is heard only when it fails. */
  readonly quiet?: true;
}

const STEPS: readonly Step[] = [
  { name: 'browsers', command: ['node', 'tools/browsers.ts'] },
  { name: 'build', command: ['npm', 'run', '--silent', 'build'] },
  { name: 'lint', command: ['npm', 'run', '--silent', 'lint'] },
  { name: 'typecheck', command: ['npm', 'run', '--silent', 'typecheck'] },
  { name: 'node', command: ['vitest', 'run', '--project', 'node', '--project', 'postgres-18'], tests: true },
  { name: 'browser', command: ['vitest', 'run', '--project', 'browser'], tests: true },
  { name: 'e2e', command: ['vitest', 'run', '--project', 'e2e'], tests: true },
  { name: 'package', command: ['vitest', 'run', '--project', 'package'], tests: true },
  { name: 'publint', command: ['publint', '--strict'], quiet: true },
  { name: 'attw', command: ['attw', '--pack', '.', '--profile', 'esm-only', '--format', 'ascii'], quiet: true },
];

const TALLY_FILE = '.cache/tally.json';

/** A run that ends without a tally died; that is one failure. */
const DIED: Tally = { passed: 0, failed: 1, excused: [], unexcused: [] };

const readTally = (): Tally | undefined => {
  try {
    return JSON.parse(readFileSync(TALLY_FILE, 'utf8')) as Tally;
  } catch {
    return undefined;
  }
};

const run = ({ name, command: [program, ...args], tests, quiet }: Step): Tally => {
  rmSync(TALLY_FILE, { force: true });
  console.log(`\n== ${name}: ${program} ${args.join(' ')}`);
  const env = { ...process.env, CI: 'true', SAMEKEY_TALLY: TALLY_FILE };
  const stdio = quiet ? 'pipe' : 'inherit';
  const { status, stdout, stderr } = spawnSync(program, args, { stdio, encoding: 'utf8', env, shell: process.platform === 'win32' });
  const ok = status === 0;
  if (quiet && !ok) console.log(`${stdout}${stderr}`);
  if (!tests) return { ...DIED, passed: ok ? 1 : 0, failed: ok ? 0 : 1 };
  const counted = readTally() ?? DIED;
  return ok || counted.failed > 0 ? counted : { ...counted, failed: 1 };
};

mkdirSync('.cache', { recursive: true });
const started = performance.now();
const tallies = STEPS.map(step => ({ ...run(step), name: step.name }));
const failing = tallies.filter(({ failed, unexcused }) => failed + unexcused.length > 0).map(({ name }) => name);
const unexcused = tallies.flatMap(tally => tally.unexcused);
const sum = (pick: (tally: Tally) => number): number => tallies.reduce((total, tally) => total + pick(tally), 0);

console.log(`\n== done in ${Math.round((performance.now() - started) / 1000)} s`);
for (const skip of tallies.flatMap(tally => tally.excused)) console.log(`skipped: ${skip}`);
for (const skip of unexcused) console.log(`skipped without a reason, which counts as a failure: ${skip}`);
if (failing.length > 0) console.log(`failing: ${failing.join(', ')}`);
const failed = sum(tally => tally.failed) + unexcused.length;
console.log(`${sum(tally => tally.passed)} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
