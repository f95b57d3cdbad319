import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, firefox } from 'playwright';
import type { BrowserContext, Page } from 'playwright';
import type { BrowserName } from '../../tools/browsers.js';
import { launchOptions } from '../browsers.js';

/** A browser with a profile folder of its own, which outlives the browser. */
export interface BrowserSession {
  /** A new tab. */
  open(url: string): Promise<Page>;
  /** SIGKILL, then a new start on the same profile: what a crash of the machine's user looks like. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** Nothing a page does takes this long, on however busy a machine; it only ends what hangs. */
const HANG_MS = 60_000;

const ENGINES = { chromium, firefox };

/** A killed browser may hold its folder for a moment. */
const REMOVE = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 } as const;

const processesOf = (profile: string): number[] =>
  execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(profile))
    .map(line => Number.parseInt(line, 10));

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // A child may have gone with its parent.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

export const startBrowser = async (name: BrowserName): Promise<BrowserSession> => {
  const profile = mkdtempSync(join(tmpdir(), `samekey-${name}-`));
  const launch = async (): Promise<BrowserContext> => {
    const context = await ENGINES[name].launchPersistentContext(profile, { ...launchOptions(name), headless: true });
    context.setDefaultTimeout(HANG_MS);
    return context;
  };
  let context = await launch();

  return {
    async open(url) {
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    async crash() {
      const gone = new Promise(resolve => context.once('close', resolve));
      const pids = processesOf(profile);
      if (pids.length === 0) throw new Error(`No process has ${profile} on its command line, so there is nothing to kill.`);
      pids.forEach(kill);
      await gone;
      context = await launch();
    },
    async close() {
      await context.close();
      rmSync(profile, REMOVE);
    },
  };
};
