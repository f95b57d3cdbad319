import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import type { Tally } from '../../tools/tally-reporter.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// Inside the project, so that the sample finds vitest.
mkdirSync(join(ROOT, '.cache'), { recursive: true });
const folder = mkdtempSync(join(ROOT, '.cache', 'tally-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONFIG = `
import { tallyReporter } from '../../tools/tally-reporter.js';
export default { test: { reporters: [tallyReporter('tally.json')], include: ['*.test.ts'] } };
`;

const SAMPLE = `
import { beforeAll, describe, expect, test } from 'vitest';
test('holds', () => {});
test('fails', () => expect(1).toBe(2));
test('cannot hold here', context => context.skip('this engine has no transactions'));
test.skip('cannot hold there (skipped: it has no clock)', () => {});
test.skip('nobody knows why', () => {});
test.skip('says something else (in parentheses)', () => {});
test.skip('has an empty reason (skipped: )', () => {});
test.todo('not written');
describe('behind a broken hook', () => {
  beforeAll(() => { throw new Error('no server'); });
  test('never runs', () => {});
});
`;

test('every test of a run is counted: passed, failed, skipped with a reason, skipped without', () => {
  writeFileSync(join(folder, 'vitest.config.ts'), CONFIG);
  writeFileSync(join(folder, 'sample.test.ts'), SAMPLE);
  writeFileSync(join(folder, 'broken.test.ts'), `import './nowhere.js';`);
  spawnSync(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder], { cwd: folder, encoding: 'utf8' });
  const tally = JSON.parse(readFileSync(join(folder, 'tally.json'), 'utf8')) as Tally;
  // One failing test, one broken hook, one file that does not load.
  expect(tally).toMatchObject({ passed: 1, failed: 3 });
  expect(tally.excused).toEqual([
    expect.stringContaining('cannot hold here (this engine has no transactions)'), expect.stringMatching(/cannot hold there \(skipped: it has no clock\)$/),
  ]);
  expect(tally.unexcused).toEqual(['nobody knows why', 'says something else (in parentheses)', 'has an empty reason (skipped: )', 'not written', 'behind a broken hook > never runs'].map(name => expect.stringContaining(name)));
});
