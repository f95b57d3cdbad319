import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { toNodeListener, type FetchHandler } from '../../src/server/adapters/node.js';
import { createDedup, withCors } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { startBrowser, type BrowserSession } from '../support/browser-session.js';
import { buildPages, type BuiltPages } from '../support/built-pages.js';
import { startPaymentServer, type PaymentServer } from '../support/payment-server.js';
import type { CrossOriginPage, Paid } from './cors-page/page.js';

declare const window: { readonly crossOrigin: CrossOriginPage };

type Obstacle = (request: Request, api: FetchHandler) => Response | Promise<Response>;

/** An API of another origin than its pages, in whose way something may stand. */
interface Api {
  readonly origin: string;
  /** Method and key of what arrived, in order. */
  readonly arrived: readonly string[];
  readonly charges: number;
  /** Lets something else answer, which may ask the API; undefined takes it away. */
  block(obstacle: Obstacle | undefined): void;
  close(): Promise<void>;
}

const startApi = async (): Promise<Api> => {
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme' });
  const arrived: string[] = [];
  let charges = 0;
  const charge = (): Response => Response.json({ id: `ch_${(charges += 1)}` }, { status: 201 });
  const whole = withCors(request => dedup.handle(request, charge, { name: 'charge' }), { origins: '*' });
  let obstacle: Obstacle | undefined;
  const listener = toNodeListener(request => {
    arrived.push([request.method, request.headers.get('idempotency-key')].filter(Boolean).join(' '));
    return obstacle ? obstacle(request, whole) : whole(request);
  });
  const server = createServer(listener);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    get charges() {
      return charges;
    },
    block: next => void (obstacle = next),
    async close() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
};

/** CORS as servers have it that never heard of the key. */
const withoutKey: Obstacle = () =>
  new Response(null, { status: 204, headers: { 'access-control-allow-origin': '*', 'access-control-allow-methods': 'POST', 'access-control-allow-headers': 'content-type' } });

/** A gateway before the API that is busy for an hour. Preflights pass. */
const busy = (exposed: Record<string, string>): Obstacle => request =>
  request.method === 'OPTIONS'
    ? new Response(null, { status: 204, headers: { 'access-control-allow-origin': '*', 'access-control-allow-methods': 'POST', 'access-control-allow-headers': 'content-type, idempotency-key' } })
    : new Response('busy', { status: 503, headers: { 'access-control-allow-origin': '*', 'retry-after': '3600', ...exposed } });

let pages: BuiltPages;
beforeAll(async () => {
  pages = await buildPages(new URL('cors-page/', import.meta.url), ['index.html']);
});
afterAll(() => pages.remove());

describe.each(['chromium', 'firefox'] as const)('an API of another origin in %s', name => {
  let browser: BrowserSession;
  let shop: PaymentServer;
  let api: Api;
  let page: Page;
  beforeAll(async () => {
    browser = await startBrowser(name);
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    [shop, api] = await Promise.all([startPaymentServer({ pages: pages.folder }), startApi()]);
    page = await browser.open(`${shop.origin}/?${new URLSearchParams({ api: api.origin })}`);
    await page.waitForFunction(() => window.crossOrigin !== undefined);
  });
  afterEach(() => Promise.all([shop.close(), api.close()]));

  const pay = (): Promise<Paid> => page.evaluate(() => window.crossOrigin.pay('1'));
  const record = (): Promise<{ readonly state: string; readonly key: string } | undefined> => page.evaluate(() => window.crossOrigin.recordOf('1'));

  test('C13: a preflight that does not allow the key lets no request through: the error names CORS, retries are bounded, the record is kept; allowed, the same key succeeds', async () => {
    api.block(withoutKey);
    const blocked = await pay();
    expect(blocked.code).toBe('OPERATION_PENDING');
    expect(blocked.message).toMatch(/CORS headers may not allow the key: Access-Control-Allow-Headers must name it/);
    expect([api.arrived, api.charges]).toEqual([['OPTIONS', 'OPTIONS', 'OPTIONS'], 0]);
    const kept = await record();
    expect(kept?.state).toBe('pending');
    api.block(undefined);
    expect(await pay()).toEqual({ id: 'ch_1', replayed: false });
    expect([api.arrived.slice(3), api.charges]).toEqual([['OPTIONS', `POST ${kept?.key}`], 1]);
  });

  test('C13: a Retry-After that is not exposed is not seen: the client backs off as usual, gives up in time, and does not fail over it', async () => {
    api.block(busy({}));
    const hidden = await pay();
    expect([hidden.code, api.arrived.filter(one => one.startsWith('POST')).length]).toEqual(['OPERATION_PENDING', 3]);
    expect(hidden.dueIn).toBeLessThan(3_600_000);
    api.block(undefined);
    expect(await pay()).toEqual({ id: 'ch_1', replayed: false });
  });

  test('C13, control: an exposed Retry-After is obeyed, so there is no second request now', async () => {
    api.block(busy({ 'access-control-expose-headers': 'retry-after' }));
    expect([(await pay()).code, api.arrived.filter(one => one.startsWith('POST')).length]).toEqual(['OPERATION_PENDING', 1]);
  });

  test('58, C13: an answer without CORS headers is a lost one; the replay is told from a first answer, because that header is exposed', async () => {
    let lost = 0;
    api.block(async (request, whole) => {
      const response = await whole(request);
      return request.method === 'POST' && (lost += 1) === 1 ? new Response('executed, and then the gateway failed', { status: 500 }) : response;
    });
    expect(await pay()).toEqual({ id: 'ch_1', replayed: 'server' });
    expect(api.charges).toBe(1);
  });
});
