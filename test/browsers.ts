import type { LaunchOptions } from 'playwright';
import { findBrowser } from '../tools/browsers.js';
import type { BrowserName } from '../tools/browsers.js';

/** What keeps a browser quiet: no updates, no first-run pages, no network of its own. */
const CHROMIUM_ARGS = [
  '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

const located = (name: BrowserName): { readonly path: string; readonly own: boolean } => {
  const found = findBrowser(name);
  if (!found) throw new Error(`No ${name} on this machine. Run \`npm run browsers\`, which finds or installs it.`);
  return found;
};

export const chromiumLaunch = (): LaunchOptions => ({
  executablePath: located('chromium').path,
  // Chromium's sandbox refuses to run for root.
  args: process.getuid?.() === 0 ? ['--no-sandbox', ...CHROMIUM_ARGS] : CHROMIUM_ARGS,
});

export const firefoxLaunch = (): LaunchOptions => {
  const { path, own } = located('firefox');
  // A Firefox that Playwright did not patch is driven through WebDriver BiDi, which this channel selects.
  return own ? { executablePath: path } : { executablePath: path, channel: 'moz-firefox' };
};

/** Launch options by browser, for tests that start one themselves. */
export const launchOptions = (name: BrowserName): LaunchOptions => (name === 'chromium' ? chromiumLaunch() : firefoxLaunch());
