import { HttpResponse, http } from 'msw';
import { setupWorker } from 'msw/browser';
import { createIdempotencyMock, type IdempotencyMock } from 'samekey/msw';
import { indexedDBDedupStore } from 'samekey/server/stores/indexeddb';
import type { Order } from './shop.js';

/** What can be made to go wrong with the next request. */
export type Fault = 'nothing' | 'lose-response' | 'lose-request' | 'slow' | 'unavailable';

/** ms: long enough to click twice, and long enough to reload or to change to another tab. */
const USUAL_MS = 700;
const SLOW_MS = 8_000;

/** A payment API as a server is: what it has done and answered outlives the page, and all tabs meet the same one. */
export const mock: IdempotencyMock = createIdempotencyMock({ store: indexedDBDedupStore({ name: 'samekey-demo-server' }) });

const charge = async ({ request }: { request: Request }): Promise<Response> => {
  const { id, amount } = await request.json() as Order;
  return HttpResponse.json({ id: `ch_${crypto.randomUUID().slice(0, 6)}`, order: id, amount }, { status: 201 });
};

const plants: { readonly [F in Fault]: () => Disposable } = {
  nothing: () => mock.fault('charge', 'delay', { ms: USUAL_MS }),
  'lose-response': () => mock.fault('charge', 'lose-response'),
  'lose-request': () => mock.fault('charge', 'lose-request'),
  slow: () => mock.fault('charge', 'delay', { ms: SLOW_MS }),
  unavailable: () => mock.fault('charge', 'status', { status: 503 }),
};

let planted: Disposable | undefined;

/** Plants a fault into the next request that reaches the mock from this page, in place of the one before. */
export const plant = (fault: Fault): void => {
  planted?.[Symbol.dispose]();
  planted = plants[fault]();
};

/** From now on this page's requests meet the mock. */
export const startPaymentApi = async (): Promise<void> => {
  const worker = setupWorker(http.post('/api/charges', mock.idempotent(charge, { name: 'charge' })));
  await worker.start({ quiet: true, onUnhandledFrame: 'bypass' });
  await mock.load();
};
