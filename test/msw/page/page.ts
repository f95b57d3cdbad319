import { http, HttpResponse } from 'msw';
import { setupWorker } from 'msw/browser';
import { createIdempotencyMock, type IdempotencyMock } from '../../../src/msw/index.js';
import { indexedDBDedupStore } from '../../../src/server/stores/indexeddb.js';

/** What a test does with the page from outside. */
export interface MockPage {
  readonly mock: IdempotencyMock;
  charge(key: string): Promise<Response>;
  stop(): void;
}

declare global {
  interface Window {
    page?: MockPage;
  }
}

const settings = new URLSearchParams(location.search);
const lease = Number(settings.get('lease'));

const mock = createIdempotencyMock({ store: indexedDBDedupStore({ name: settings.get('database') ?? '' }), lease });
const hang = settings.get('resolver') === 'hangs';
const effects = settings.get('effects') === 'idempotent' ? 'idempotent' : 'external';

const worker = setupWorker(
  http.post('/charges', mock.idempotent(async () => (hang ? new Promise<never>(() => {}) : HttpResponse.json({ by: settings.get('page') }, { status: 201 })), { name: 'charge', effects })),
);
await worker.start({ quiet: true, onUnhandledFrame: 'bypass' });
await mock.load();

window.page = {
  mock,
  charge: key => fetch('/charges', { method: 'POST', headers: { 'idempotency-key': key, 'content-type': 'application/json' }, body: '{"amount":4200}' }),
  // Not awaited: it waits for resolvers that hang.
  stop: () => void worker.stop(),
};
