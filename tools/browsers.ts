import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A browser that tests can start. `own`: built by Playwright, which speaks its own protocol to it. */
export interface FoundBrowser {
  readonly path: string;
  readonly own: boolean;
}

export type BrowserName = 'chromium' | 'firefox';

/** Names the executable to use, before all others. */
const OVERRIDE: Record<BrowserName, string> = { chromium: 'SAMEKEY_CHROMIUM', firefox: 'SAMEKEY_FIREFOX' };

const SYSTEM: Record<BrowserName, readonly string[]> = {
  chromium: [
    '/usr/bin/chromium', '/usr/bin/google-chrome', '/usr/bin/chromium-browser',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ],
  firefox: ['/usr/bin/firefox-esr', '/usr/bin/firefox', '/Applications/Firefox.app/Contents/MacOS/firefox'],
};

const DEBIAN_PACKAGE: Record<BrowserName, string> = { chromium: 'chromium', firefox: 'firefox-esr' };

/** Playwright downloads from here; asking first costs a second, its own retries minutes. */
const DOWNLOAD_HOST = 'cdn.playwright.dev';
const PROBE_TIMEOUT_MS = 3_000;
/** Two archives of 150 MB over a slow line; beyond that the line is as good as dead. */
const DOWNLOAD_TIMEOUT_MS = 300_000;

/** Where Playwright keeps what it downloaded, by its own rules. */
const downloadFolder = (): string => {
  const caches: Partial<Record<NodeJS.Platform, string>> = { darwin: 'Library/Caches', win32: 'AppData/Local' };
  return process.env['PLAYWRIGHT_BROWSERS_PATH'] ?? join(homedir(), caches[process.platform] ?? '.cache', 'ms-playwright');
};

// Playwright takes most of a second to load; where it never downloaded anything it need not be asked.
const ownPath = (name: BrowserName): string | undefined => {
  if (!existsSync(downloadFolder())) return undefined;
  const playwright = createRequire(import.meta.url)('playwright') as typeof import('playwright');
  const path = playwright[name].executablePath();
  return existsSync(path) ? path : undefined;
};

/** The environment's choice, else Playwright's own, else the system's; undefined when there is none. */
export const findBrowser = (name: BrowserName): FoundBrowser | undefined => {
  const chosen = process.env[OVERRIDE[name]];
  if (chosen !== undefined) {
    if (!existsSync(chosen)) throw new Error(`${OVERRIDE[name]} names ${chosen}, which does not exist. Correct it or unset it.`);
    return { path: chosen, own: false };
  }
  const own = ownPath(name);
  if (own !== undefined) return { path: own, own: true };
  const path = SYSTEM[name].find(existsSync);
  return path === undefined ? undefined : { path, own: false };
};

const missing = (): BrowserName[] => (['chromium', 'firefox'] as const).filter(name => findBrowser(name) === undefined);

const reachable = (host: string): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect({ host, port: 443, timeout: PROBE_TIMEOUT_MS });
    const end = (answer: boolean) => () => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', end(true)).once('timeout', end(false)).once('error', end(false));
  });

const run = (command: string, args: readonly string[], timeout?: number): boolean => {
  console.log(`> ${command} ${args.join(' ')}`);
  const { status } = spawnSync(command, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    ...(timeout === undefined ? {} : { timeout }),
  });
  return status === 0;
};

/** Found is not yet startable: a downloaded browser may lack system libraries. */
const starts = (name: BrowserName): boolean => {
  const found = findBrowser(name);
  return found !== undefined && spawnSync(found.path, ['--version'], { timeout: 30_000 }).status === 0;
};

const isRoot = process.getuid?.() === 0;
const isDebian = (): boolean => existsSync('/etc/os-release') && /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readFileSync('/etc/os-release', 'utf8'));

const installByPlaywright = async (names: readonly BrowserName[]): Promise<boolean> => {
  const proxied = process.env['HTTPS_PROXY'] ?? process.env['PLAYWRIGHT_DOWNLOAD_HOST'];
  if (proxied === undefined && !(await reachable(DOWNLOAD_HOST))) {
    console.log(`${DOWNLOAD_HOST} cannot be reached, so Playwright's own browsers are out of question.`);
    return false;
  }
  const withDeps = isRoot && isDebian() ? ['--with-deps'] : [];
  return run('playwright', ['install', ...withDeps, ...names], DOWNLOAD_TIMEOUT_MS);
};

const installByDebian = (names: readonly BrowserName[]): boolean =>
  isRoot && isDebian()
  && run('apt-get', ['update', '-qq'])
  && run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names.map(name => DEBIAN_PACKAGE[name])]);

const advice = (names: readonly BrowserName[]): string =>
  [
    `There is no ${names.join(' and no ')} that starts, and neither Playwright nor the system's packages could provide one. Do one of these:`,
    `  npx playwright install --with-deps ${names.join(' ')}    (needs ${DOWNLOAD_HOST})`,
    `  sudo apt-get install -y ${names.map(name => DEBIAN_PACKAGE[name]).join(' ')}    (Debian)`,
    `  export ${names.map(name => `${OVERRIDE[name]}=/path/to/${name}`).join(' ')}    (a browser that you have)`,
  ].join('\n');

/** Makes sure that both browsers are there. Touches no network when they are. */
export const ensureBrowsers = async (): Promise<void> => {
  const wanted = missing();
  if (wanted.length === 0) return;
  await installByPlaywright(wanted);
  const left = missing();
  if (left.length > 0) installByDebian(left);
  const lame = wanted.filter(name => !starts(name));
  if (lame.length > 0) throw new Error(advice(lame));
};

const main = async (): Promise<void> => {
  try {
    await ensureBrowsers();
    for (const name of ['chromium', 'firefox'] as const) console.log(`${name}: ${findBrowser(name)?.path}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
};

if (import.meta.main) await main();
