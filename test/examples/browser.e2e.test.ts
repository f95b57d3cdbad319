import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright';
import { createServer, type ViteDevServer } from 'vite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startBrowser, type BrowserSession } from '../support/browser-session.js';

let server: ViteDevServer;
let url: string;

beforeAll(async () => {
  const root = fileURLToPath(new URL('../../examples/browser', import.meta.url));
  // A cache of its own, so that a demo which runs at the same time does not have its dependencies bundled anew under it.
  const cacheDir = fileURLToPath(new URL('../../.cache/browser-example', import.meta.url));
  server = await createServer({ root, cacheDir, server: { host: '127.0.0.1', port: 0 }, logLevel: 'error' });
  await server.listen();
  url = server.resolvedUrls?.local[0] ?? '';
});
afterAll(() => server.close());

const pay = (page: Page): Promise<void> => page.getByRole('button', { name: /^Pay/ }).click();
const choose = (page: Page, fault: string): Promise<void> => page.getByLabel(fault).check();
const paid = (page: Page): Promise<void> => page.locator('#status[data-state=succeeded]').waitFor();
const steps = (page: Page): Promise<string[]> => page.locator('#operations details[open] li span').allTextContents();

/**
 * Clicks and reloads from within the page, as soon as the server has charged: on a busy machine a test that looks on
 * from outside may come too late.
 */
const whenCharged = (page: Page, click: readonly ('#pay' | '#reload')[]): Promise<void> =>
  page.evaluate(async selectors => {
    const [charges, ...targets] = ['#charges', ...selectors].map(selector => document.querySelector<HTMLElement>(selector)!);
    while (charges?.textContent !== '1') await new Promise(resolve => setTimeout(resolve, 20));
    targets.forEach(target => target.click());
  }, click);

/** What the three counters say, once the timeline has caught up. */
const counts = async (page: Page): Promise<string> => {
  await page.locator('#counts[data-verdict=equal]').waitFor();
  return (await page.locator('#counts dd').allTextContents()).join(' = ');
};

describe.each(['chromium', 'firefox'] as const)('the checkout page in %s', name => {
  let browser: BrowserSession;
  const pages: Page[] = [];
  beforeAll(async () => {
    browser = await startBrowser(name);
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    await pages[0]?.getByRole('button', { name: 'Start over' }).click();
    await pages[0]?.getByText('Each payment gets a timeline here').waitFor();
    await Promise.all(pages.splice(0).map(page => page.close()));
  });

  const open = async (): Promise<Page> => {
    const page = await browser.open(url);
    pages.push(page);
    await page.locator('body[data-ready]').waitFor();
    return page;
  };

  test('a lost answer: asked again with the same key, one charge', async () => {
    const page = await open();
    await choose(page, 'The answer is lost');
    await pay(page);
    await paid(page);
    expect(await counts(page)).toBe('1 = 1 = 1');
    // The timeline is read after the counters.
    await expect.poll(async () => (await steps(page)).map(text => text.replace(/\d+\.\d+ s/, '… s')), { timeout: 20_000 }).toEqual([
      'Pay is clicked', 'Request sent', 'The server charges the card', 'The answer is lost on the way',
      'Sent again after … s: same key, same bytes', 'The server knows the key and repeats its answer', 'The shop knows: paid',
    ]);
  });

  test.each(['The request is lost', 'A gateway answers 503'])('%s: charged by the second request, once', async fault => {
    const page = await open();
    await choose(page, fault);
    await pay(page);
    await paid(page);
    expect(await counts(page)).toBe('1 = 1 = 1');
  });

  test('reloaded in mid-flight: the next page goes on by itself, one charge', async () => {
    const page = await open();
    await choose(page, 'The answer takes 8 s');
    const reloaded = page.waitForEvent('load');
    await Promise.all([pay(page), whenCharged(page, ['#reload']), reloaded]);
    await paid(page);
    expect(await counts(page)).toBe('1 = 1 = 1');
    expect(await steps(page)).toContain('The page is opened again');
  });

  test('a double click: one request', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Pay/ }).dblclick();
    await paid(page);
    expect(await counts(page)).toBe('1 = 1 = 1');
    expect((await steps(page)).toSorted()).toEqual(['Pay is clicked', 'Pay is clicked', 'Request sent', 'The server charges the card', 'The shop knows: paid']);
  });

  test('paid in two tabs: both learn of the one charge', async () => {
    const page = await open();
    await choose(page, 'The answer takes 8 s');
    const second = await open();
    await Promise.all([pay(page), whenCharged(second, ['#pay'])]);
    await Promise.all([paid(page), paid(second)]);
    expect(await counts(second)).toBe('1 = 1 = 1');
    expect(await page.locator('#status').textContent()).toBe(await second.locator('#status').textContent());
    expect((await steps(second)).filter(text => text === 'Request sent')).toHaveLength(1);
  });

  test('the next order is another operation', async () => {
    const page = await open();
    await pay(page);
    await paid(page);
    await page.getByRole('button', { name: 'Next order' }).click();
    await pay(page);
    await paid(page);
    expect(await counts(page)).toBe('2 = 2 = 2');
  });
});
