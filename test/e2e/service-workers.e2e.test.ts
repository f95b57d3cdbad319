import type { Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startBrowser, type BrowserSession } from '../support/browser-session.js';
import { buildPages, type BuiltPages } from '../support/built-pages.js';
import { startPaymentServer, type PaymentServer } from '../support/payment-server.js';
import { bePatient } from '../support/patience.js';
import type { MockedPage } from './workers-page/mocked.js';
import type { ShopPage } from './workers-page/shop.js';

bePatient();

declare const window: { readonly mocked: MockedPage; readonly shop: ShopPage };

let pages: BuiltPages;
beforeAll(async () => {
  pages = await buildPages(new URL('workers-page/', import.meta.url), ['mocked/index.html', 'shop/index.html']);
});
afterAll(() => pages.remove());

describe.each(['chromium', 'firefox'] as const)('service workers in %s', name => {
  let browser: BrowserSession;
  let server: PaymentServer;
  beforeAll(async () => {
    browser = await startBrowser(name);
  });
  afterAll(() => browser.close());
  // A real server behind the mock, which counts what reaches it; a new one is a new origin, without any worker.
  beforeEach(async () => {
    server = await startPaymentServer({ pages: pages.folder });
  });
  afterEach(() => server.close());

  const mockedPage = async (settings: Record<string, string> = {}): Promise<Page> => {
    const page = await browser.open(`${server.origin}/mocked/index.html?${new URLSearchParams(settings)}`);
    await page.waitForFunction(() => window.mocked !== undefined);
    return page;
  };
  const pay = (page: Page, order: string): Promise<string> => page.evaluate(each => window.mocked.pay(each), order);
  const resultOf = (page: Page, order: string): Promise<string> => page.evaluate(each => window.mocked.resultOf(each), order);
  const stateOf = (page: Page, order: string): Promise<string | undefined> => page.evaluate(each => window.mocked.stateOf(each), order);
  const executions = (page: Page): Promise<number> => page.evaluate(() => window.mocked.executions());
  const refused = (page: Page): Promise<readonly string[]> => page.evaluate(() => window.mocked.refused);

  test('C96: mock and client start in one tick: no request reaches the real server', async () => {
    const page = await mockedPage({ pay: '1' });
    expect([await pay(page, '1'), await executions(page), server.requests.length]).toEqual(['mocked', 1, 0]);
  });

  test('C96, C100: what is resumed at the start of a page waits for a mock that is late, which still knows what it did', async () => {
    const page = await mockedPage({ late: '300' });
    await page.evaluate(() => window.mocked.loseResponse());
    expect(await pay(page, '1')).toBe('OPERATION_PENDING');
    await page.reload();
    await page.waitForFunction(() => window.mocked !== undefined);
    expect([await resultOf(page, '1'), await executions(page), server.requests.length]).toEqual(['mocked', 1, 0]);
  });

  test('C96, control: a request in that tick that does not wait reaches the real server', async () => {
    const page = await mockedPage({ bare: '' });
    expect([await page.evaluate(() => window.mocked.bare()), await executions(page), server.effects.length]).toEqual(['ch_1', 0, 1]);
  });

  test('C97: stopped while a request is in flight: it comes to its end', async () => {
    const page = await mockedPage();
    await page.evaluate(() => window.mocked.hold());
    const paid = pay(page, '1');
    await expect.poll(() => executions(page)).toBe(1);
    await page.evaluate(() => window.mocked.stop());
    await page.evaluate(() => window.mocked.goOn());
    expect([await paid, await stateOf(page, '1'), server.requests.length]).toEqual(['mocked', 'succeeded', 0]);
  });

  test('C97: stopped while an answer is lost: the record is kept, the real server is not believed, and after a restart the mock settles it', async () => {
    const page = await mockedPage({ retries: '1' });
    await page.evaluate(() => (window.mocked.loseResponse(), window.mocked.hold()));
    const paid = pay(page, '1');
    await expect.poll(() => executions(page)).toBe(1);
    await page.evaluate(() => window.mocked.stop());
    await page.evaluate(() => window.mocked.goOn());
    expect([await paid, await stateOf(page, '1'), server.requests.length]).toEqual(['OPERATION_PENDING', 'pending', 1]);
    await page.evaluate(() => window.mocked.start());
    expect([await pay(page, '1'), await stateOf(page, '1'), await executions(page), server.requests.length]).toEqual(['mocked', 'succeeded', 1, 1]);
  });

  test('C95: a worker that lost its page lets requests through, and their answers are refused; when the page is seen again it mocks again', async () => {
    const page = await mockedPage();
    expect(await pay(page, '1')).toBe('mocked');
    await page.evaluate(() => window.mocked.loseWorker());
    await expect.poll(async () => (await pay(page, '2'), server.requests.length)).toBeGreaterThan(0);
    expect([await stateOf(page, '2'), (await refused(page))[0]]).toEqual(['pending', expect.stringContaining('not by the mock')]);
    await page.evaluate(() => void document.dispatchEvent(new Event('visibilitychange')));
    const reached = server.requests.length;
    expect([await pay(page, '2'), await executions(page), server.requests.length]).toEqual(['mocked', 2, reached]);
  });

  const shopPage = async (settings: Record<string, string> = {}): Promise<Page> => {
    const page = await browser.open(`${server.origin}/shop/index.html?${new URLSearchParams(settings)}`);
    await page.waitForFunction(() => window.shop !== undefined);
    return page;
  };

  /** Pays, is reloaded before the answer, and is told it by the page that opens then. */
  const payThroughReload = async (page: Page): Promise<string> => {
    server.script({ kind: 'hang' });
    await page.evaluate(() => void window.shop.pay('1').catch(() => {}));
    await server.arrived(1);
    await page.reload();
    await page.waitForFunction(() => window.shop !== undefined);
    return page.evaluate(() => window.shop.resultOf('1'));
  };

  test('C101: the client resumes from the page, and registers no service worker', async () => {
    const page = await shopPage();
    expect([await payThroughReload(page), server.effects.length]).toEqual(['ch_1', 1]);
    expect(await page.evaluate(() => window.shop.workers())).toEqual([]);
  });

  test('C101: under a service worker of the application it does the same, and leaves that worker alone', async () => {
    const page = await shopPage({ 'app-worker': '/shop/' });
    expect([await payThroughReload(page), server.effects.length]).toEqual(['ch_1', 1]);
    expect(new Set(server.requests.map(({ headers, key, bytes }) => [headers['x-through'], key, bytes].join(' '))).size).toBe(1);
    expect(server.requests[0]?.headers['x-through']).toBe('app-worker');
    expect(await page.evaluate(() => window.shop.workers())).toEqual(['/shop/ /app-worker.js']);
  });

  test('C101: the worker of a mock in a scope of its own stands beside that of the application', async () => {
    const page = await mockedPage({ 'app-worker': '/', scope: '/mocked/' });
    expect([await pay(page, '1'), server.requests.length]).toEqual(['mocked', 0]);
    expect(await page.evaluate(() => window.mocked.workers())).toEqual(['/ /app-worker.js', '/mocked/ /mockServiceWorker.js']);
    const shop = await shopPage();
    expect(await shop.evaluate(() => window.shop.pay('2'))).toBe('ch_1');
    expect(server.requests.map(({ headers }) => headers['x-through'])).toEqual(['app-worker']);
  });

  test('C101: where the application’s worker has the longer scope the mock is not asked, and its absence is noticed', async () => {
    const page = await mockedPage({ 'app-worker': '/mocked/', scope: '/' });
    expect([await pay(page, '1'), await stateOf(page, '1'), await executions(page)]).toEqual(['OPERATION_PENDING', 'pending', 0]);
    expect((await refused(page))[0]).toContain('not by the mock');
  });
});
