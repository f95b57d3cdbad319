import type { Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startBrowser } from '../support/browser-session.js';
import type { BrowserSession } from '../support/browser-session.js';
import { buildPages, type BuiltPages } from '../support/built-pages.js';
import { startPaymentServer } from '../support/payment-server.js';
import type { PaymentServer } from '../support/payment-server.js';

let pages: BuiltPages;
beforeAll(async () => {
  pages = await buildPages(new URL('page/', import.meta.url), ['index.html', 'bare.html']);
});
afterAll(() => pages.remove());

/** The page shows the answer, or what went wrong instead. */
const answerOn = async (page: Page): Promise<string> => {
  await page.locator('#answer:not(:empty), #failure:not(:empty)').first().waitFor();
  expect(await page.locator('#failure').textContent()).toBe('');
  return (await page.locator('#answer').textContent())!;
};

/** One effect, one key, the same bytes on every attempt. */
const expectOneCharge = (server: PaymentServer, { attempts }: { attempts: number }): void => {
  expect(server.effects).toMatchObject([{ id: 'ch_1', order: '42', amount: 4200 }]);
  expect(server.requests.length).toBeGreaterThanOrEqual(attempts);
  expect(new Set(server.requests.map(({ key }) => key))).toEqual(new Set([server.effects[0]!.key]));
  expect(server.effects[0]!.key).toMatch(/^[\x21-\x7e]+$/);
  expect(new Set(server.requests.map(({ bytes, headers }) => `${bytes} ${headers['content-type']}`)).size).toBe(1);
};

describe.each(['chromium', 'firefox'] as const)('a checkout in %s', name => {
  let browser: BrowserSession;
  let server: PaymentServer;
  beforeAll(async () => {
    browser = await startBrowser(name);
  });
  afterAll(() => browser.close());
  // A server of its own per test is an origin of its own, so no test sees what another stored.
  beforeEach(async () => {
    server = await startPaymentServer({ pages: pages.folder });
  });
  afterEach(() => server.close());

  const payAndWait = async (path = ''): Promise<Page> => {
    const page = await browser.open(server.origin + path);
    await page.click('#pay');
    await server.arrived(1);
    return page;
  };

  test('reloaded while the server is still working: one charge, and the page learns of it', async () => {
    server.script({ kind: 'slow' });
    const page = await payAndWait();
    await page.reload();
    await server.arrived(2);
    server.release();
    expect(await answerOn(page)).toBe('ch_1');
    expectOneCharge(server, { attempts: 2 });
  });

  test('reloaded after the charge, before the answer: one charge, and the page learns of it', async () => {
    server.script({ kind: 'hang' });
    const page = await payAndWait();
    await page.reload();
    expect(await answerOn(page)).toBe('ch_1');
    expectOneCharge(server, { attempts: 2 });
  });

  test('the tab is closed mid-flight and another opened: one charge, and the new tab learns of it', async () => {
    server.script({ kind: 'hang' });
    const page = await payAndWait();
    await page.close();
    expect(await answerOn(await browser.open(server.origin))).toBe('ch_1');
    expectOneCharge(server, { attempts: 2 });
  });

  test('the browser is killed mid-flight and started again: one charge, and the new page learns of it', async () => {
    server.script({ kind: 'hang' });
    await payAndWait();
    await browser.crash();
    expect(await answerOn(await browser.open(server.origin))).toBe('ch_1');
    expectOneCharge(server, { attempts: 2 });
  });

  test('the answer is lost or cut off on the way: one charge, and the page learns of it', async () => {
    server.script({ kind: 'lose-response' }, { kind: 'cut-body' }, { kind: 'status', status: 503 });
    const page = await payAndWait();
    expect(await answerOn(page)).toBe('ch_1');
    expectOneCharge(server, { attempts: 4 });
  });

  test('a double click is one request, and both clicks get its answer', async () => {
    server.script({ kind: 'slow' });
    const page = await browser.open(server.origin);
    await page.dblclick('#pay');
    await server.arrived(1);
    server.release();
    await page.waitForFunction(() => window.checkout.answers.length === 2);
    expect(await page.evaluate(() => window.checkout.answers)).toEqual(['ch_1', 'ch_1']);
    expectOneCharge(server, { attempts: 1 });
    expect(server.requests).toHaveLength(1);
  });

  test('two tabs resume at once: one of them sends, both learn the answer', async () => {
    server.script({ kind: 'hang' });
    const page = await payAndWait();
    await page.close();
    const tabs = await Promise.all([browser.open(server.origin), browser.open(server.origin)]);
    expect(await Promise.all(tabs.map(answerOn))).toEqual(['ch_1', 'ch_1']);
    expectOneCharge(server, { attempts: 2 });
    expect(server.requests).toHaveLength(2);
  });

  test('control: without samekey the same reload charges twice', async () => {
    server.script({ kind: 'hang' });
    const page = await payAndWait('/bare.html');
    await page.reload();
    expect(await answerOn(page)).toBe('ch_2');
    expect(server.effects).toHaveLength(2);
  });
});
