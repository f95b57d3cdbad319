import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import type { Tally } from '../../tools/tally-reporter.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// Inside the project, so that the sample finds vitest.
mkdirSync(join(ROOT, '.cache'), { recursive: true });
const folder = mkdtempSync(join(ROOT, '.cache', 'services-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONFIG = `
import { tallyReporter } from '../../tools/tally-reporter.js';
export default { test: { reporters: [tallyReporter('tally.json')], include: ['*.test.ts'] } };
`;

const SAMPLE = `
import { beforeEach, describe, test } from 'vitest';
import { openForAll, openOrSkip } from '../../test/support/open-for-all.js';
import { createMysqlDatabase } from '../../test/support/sql-servers.js';
describe('shared', () => {
  let db;
  openForAll(async () => { db = await createMysqlDatabase(); return db.drop; });
  beforeEach(() => db.clear());
  describe('inside', () => test('first', () => db.use()));
});
test('of its own', async context => void (await openOrSkip(context, createMysqlDatabase())).use());
describe('broken', () => {
  openForAll(() => Promise.reject(new Error('no table')));
  test('never runs', () => {});
});
`;

test('what needs a server that does not answer is skipped with a reason, and nothing else is', () => {
  writeFileSync(join(folder, 'vitest.config.ts'), CONFIG);
  writeFileSync(join(folder, 'sample.test.ts'), SAMPLE);
  const env = { ...process.env, SAMEKEY_MYSQL: 'mysql://root:@127.0.0.1:1/mysql' };
  spawnSync(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder], { cwd: folder, encoding: 'utf8', env });
  const { excused, ...rest } = JSON.parse(readFileSync(join(folder, 'tally.json'), 'utf8')) as Tally;
  const reason = expect.stringContaining('no MariaDB or MySQL answers at 127.0.0.1:1; start one, or name another with SAMEKEY_MYSQL') as string;
  expect(excused).toEqual([reason, reason]);
  expect(rest).toEqual({ passed: 0, failed: 1, unexcused: [expect.stringContaining('broken > never runs')] });
});
