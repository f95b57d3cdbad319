import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, firefox, type Browser, type BrowserContext, type Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { launchOptions } from '../browsers.js';
import { startBrowser } from '../support/browser-session.js';
import type { Shop } from './indexeddb-page.js';
import { serveScript } from '../support/script-page.js';

const call = <Name extends keyof Shop>(page: Page, name: Name, ...args: Parameters<Shop[Name]>): Promise<Awaited<ReturnType<Shop[Name]>>> =>
  page.evaluate(([method, given]) => (globalThis as unknown as { shop: Record<string, (...list: unknown[]) => unknown> }).shop[method]?.(...given), [name as string, args as unknown[]] as const) as never;

describe.each(['chromium', 'firefox'] as const)('two pages of one origin in %s', name => {
  let server: Awaited<ReturnType<typeof serveScript>>;
  let browser: Browser;
  let context: BrowserContext;
  let pages: readonly [Page, Page];

  const openPage = async (): Promise<Page> => {
    const page = await context.newPage();
    await page.goto(server.url);
    return page;
  };

  beforeAll(async () => {
    server = await serveScript(new URL('./indexeddb-page.ts', import.meta.url));
    browser = await (name === 'chromium' ? chromium : firefox).launch(launchOptions(name));
  });
  afterAll(async () => {
    await browser.close();
    server.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    pages = [await openPage(), await openPage()];
  });
  afterEach(() => context.close());

  it('C50: that claim the same 200 heads at once get each head once', async () => {
    await call(pages[0], 'begin', 200);
    expect(await Promise.all(pages.map(page => call(page, 'look')))).toEqual([200, 200]);
    const claimed = await Promise.all(pages.map((page, at) => call(page, 'claim', `page ${at}`)));
    expect(claimed.flat()).toHaveLength(200);
    expect(new Set(claimed.flat()).size).toBe(200);
  });

  it('C50: see each other live, and that one died when it was closed or left', async () => {
    const [one, other] = pages;
    const [owner, otherOwner] = [await call(one, 'owner'), await call(other, 'owner')];
    expect([await call(other, 'liveness', owner), await call(one, 'liveness', otherOwner)]).toEqual(['alive', 'alive']);
    await one.close();
    await vi.waitFor(async () => expect(await call(other, 'liveness', owner)).toBe('dead'), { timeout: 10_000 });
    const third = await openPage();
    expect(await call(third, 'liveness', otherOwner)).toBe('alive');
    await other.goto('about:blank');
    await vi.waitFor(async () => expect(await call(third, 'liveness', otherOwner)).toBe('dead'), { timeout: 10_000 });
  });

  it('find after a reload what was begun before it', async () => {
    const [one] = pages;
    await call(one, 'begin', 5);
    await one.reload();
    expect(await call(one, 'look')).toBe(5);
  });
});

describe.each(['chromium', 'firefox'] as const)('a page in %s', name => {
  it('loses nothing that was acknowledged when the browser is killed', async () => {
    const server = await serveScript(new URL('./indexeddb-page.ts', import.meta.url));
    onTestFinished(() => server.close());
    const browser = await startBrowser(name);
    onTestFinished(() => browser.close());
    const page = await browser.open(server.url);
    await call(page, 'begin', 50);
    expect(await call(page, 'look')).toBe(50);
    expect(await call(page, 'claim', 'acknowledged')).toHaveLength(50);
    await browser.crash();
    expect(await call(await browser.open(server.url), 'list')).toHaveLength(50);
  });
});

// The quota is set through Chromium's own protocol, and the files are laid out as in its profile folder.
describe('a page in chromium', () => {
  const start = async () => {
    const server = await serveScript(new URL('./indexeddb-page.ts', import.meta.url));
    const profile = mkdtempSync(join(tmpdir(), 'samekey-indexeddb-'));
    let context: BrowserContext | undefined;
    const open = async (): Promise<Page> => {
      await context?.close();
      context = await chromium.launchPersistentContext(profile, { ...launchOptions('chromium'), headless: true });
      const page = await context.newPage();
      await page.goto(server.url);
      return page;
    };
    onTestFinished(async () => {
      await context?.close();
      server.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    });
    return { open, close: () => context?.close(), profile };
  };

  it('C42: has the quota of its origin cost only the write that is too large', async () => {
    const page = await (await start()).open();
    const protocol = await page.context().newCDPSession(page);
    await protocol.send('Storage.overrideQuotaForOrigin', { origin: new URL(page.url()).origin, quotaSize: 300_000 });
    expect(await call(page, 'beginSized', [['a', 100], ['b', 3_000_000], ['c', 100]])).toEqual(['ok', 'STORE_FULL', 'ok']);
    expect(await call(page, 'list')).toEqual([['a', true], ['c', true]]);
    await protocol.send('Storage.overrideQuotaForOrigin', { origin: new URL(page.url()).origin });
    expect(await call(page, 'beginSized', [['b', 3_000_000]])).toEqual(['ok']);
  });

  it('shows a head whose bytes the disk lost as unreadable, and writes its neighbours', async () => {
    const { open, close, profile } = await start();
    expect(await call(await open(), 'beginSized', [['a', 100], ['lost', 500_000], ['c', 100]])).toEqual(['ok', 'ok', 'ok']);
    await close();
    const databases = join(profile, 'Default', 'IndexedDB');
    const large = readdirSync(databases, { recursive: true, withFileTypes: true }).filter(file => file.isFile() && file.parentPath.includes('.blob'));
    expect(large).not.toHaveLength(0);
    large.forEach(file => rmSync(join(file.parentPath, file.name)));
    const page = await open();
    expect(await call(page, 'list')).toEqual([['a', true], ['c', true], ['lost', false]]);
    expect(await call(page, 'beginSized', [['d', 100], ['lost', 100], ['e', 100]])).toEqual(['ok', 'conflict', 'ok']);
  });
});
