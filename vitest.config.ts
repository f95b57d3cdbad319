import { playwright } from '@vitest/browser-playwright';
import { msw } from 'msw/vite';
import { defineConfig } from 'vitest/config';
import { chromiumLaunch, firefoxLaunch } from './test/browsers.js';
import { tallyReporter } from './tools/tally-reporter.js';

const isCI = process.env['CI'] === 'true';

// The suffix says where a test runs. Type tests (*.test-d.ts) are checked by `npm run typecheck`.
const BROWSER_TESTS = 'test/**/*.browser.test.ts';
const E2E_TESTS = 'test/**/*.e2e.test.ts';
/** Tests of the build and of the packed tarball; they need `npm run build` first. */
const PACKAGE_TESTS = 'test/**/*.package.test.ts';

/** For a process or a browser that starts on a busy machine; no test is meant to take as long, this only ends what hangs. */
const HANG_MS = 30_000;

/** Run once more, on the newest PostgreSQL. */
const POSTGRES_TESTS = ['test/server/postgres*.test.ts', 'test/sql/{pg,postgres-js}.test.ts'];

const IN_NODE = {
  environment: 'node',
  testTimeout: HANG_MS,
  hookTimeout: HANG_MS,
  // So that threads which the code under test starts can run its sources.
  execArgv: ['--import', new URL('./tools/resolve-ts.ts', import.meta.url).href],
};

/** Test files at once. Some open 80 connections, and a PostgreSQL takes 100 unless it is told otherwise. */
const WORKERS = 2;

const tallyFile = process.env['SAMEKEY_TALLY'];

export default defineConfig({
  test: {
    allowOnly: !isCI,
    maxWorkers: WORKERS,
    reporters: tallyFile === undefined ? ['default'] : ['default', tallyReporter(tallyFile)],
    projects: [
      {
        test: {
          ...IN_NODE,
          name: 'node',
          include: ['test/**/*.test.ts'],
          exclude: [BROWSER_TESTS, E2E_TESTS, PACKAGE_TESTS],
          globalSetup: ['test/support/services/some-postgres.ts'],
        },
      },
      {
        test: { ...IN_NODE, name: 'postgres-18', include: POSTGRES_TESTS, globalSetup: ['test/support/services/newest-postgres.ts'] },
      },
      {
        plugins: [msw({ mode: 'worker-only' })],
        // Named here because a dependency found half way reloads the page under a running test.
        optimizeDeps: { include: ['ky', 'uuid', 'idb-keyval', 'msw', 'msw/browser', 'fast-check', 'expect-type'] },
        test: {
          name: 'browser',
          include: [BROWSER_TESTS],
          testTimeout: HANG_MS,
          hookTimeout: HANG_MS,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: playwright({ launchOptions: chromiumLaunch() }),
            instances: [
              { browser: 'chromium' },
              { browser: 'firefox', provider: playwright({ launchOptions: firefoxLaunch() }) },
            ],
          },
        },
      },
      {
        test: {
          name: 'e2e',
          environment: 'node',
          include: [E2E_TESTS],
          // Browsers that are started, killed and started again.
          testTimeout: 4 * HANG_MS,
          hookTimeout: 4 * HANG_MS,
          fileParallelism: false,
        },
      },
      {
        test: { name: 'package', environment: 'node', include: [PACKAGE_TESTS], testTimeout: 2 * HANG_MS, hookTimeout: 4 * HANG_MS },
      },
    ],
  },
});
