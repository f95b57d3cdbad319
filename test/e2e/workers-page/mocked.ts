import { http, HttpResponse } from 'msw';
import { setupWorker } from 'msw/browser';
import { createClient, isSamekeyError } from '../../../src/index.js';
import { createIdempotencyMock, onlyMocked } from '../../../src/msw/index.js';
import { indexedDBDedupStore } from '../../../src/server/stores/indexeddb.js';
import { registeredWorkers, startAppWorker } from './app-worker.js';

/** What the tests do with the page from outside. */
export interface MockedPage {
  /** The id of the charge, or the code of the error. */
  pay(order: string): Promise<string>;
  /** What a fetch without the client got that was made in the same tick, if the page was told to make one. */
  bare(): Promise<string | undefined>;
  /** How the operation of an order stands. */
  stateOf(order: string): Promise<string | undefined>;
  /** The id of the charge that an operation which was left unsettled ends with. */
  resultOf(order: string): Promise<string>;
  loseResponse(): void;
  /** From now on the endpoint waits before its effect until it is told to go on. */
  hold(): void;
  goOn(): void;
  executions(): Promise<number>;
  /** Not awaited, because it waits for what is in flight. */
  stop(): void;
  start(): Promise<void>;
  /** What a worker does to a page that it lost: it goes on without it. */
  loseWorker(): void;
  readonly refused: readonly string[];
  readonly workers: () => Promise<string[]>;
}

declare global {
  interface Window {
    mocked: MockedPage;
  }
}

const settings = new URLSearchParams(location.search);
const appScope = settings.get('app-worker');
if (appScope !== null) await startAppWorker(appScope);

const store = indexedDBDedupStore({ name: 'mock' });
const mock = createIdempotencyMock({ store });
let go = Promise.resolve();
let goOn = (): void => {};
const charge = async (): Promise<Response> => {
  await go;
  return HttpResponse.json({ id: 'mocked' }, { status: 201 });
};
const worker = setupWorker(http.post('/charges', mock.idempotent(charge, { name: 'charge' })));
const options = { url: '/mockServiceWorker.js', options: { scope: settings.get('scope') ?? '/' } };
const startWorker = (): Promise<unknown> => worker.start({ quiet: true, onUnhandledFrame: 'bypass', serviceWorker: options });
const late = new Promise(resolve => setTimeout(resolve, Number(settings.get('late'))));

// From here on all is one tick: the worker has only begun to start when the client resumes and calls.
const refused: string[] = [];
let ready = settings.has('late') ? late.then(startWorker) : startWorker();
const fetch = onlyMocked({ ready: () => ready, report: error => refused.push(error.message) });
const api = createClient({ prefix: location.origin, scope: 'shop', fetch, retry: { limit: Number(settings.get('retries') ?? 0), delay: () => 50 } });
api.operations.start();

const nameOf = (order: string): string => `order:${order}:charge`;

const pay = async (order: string): Promise<string> => {
  try {
    return (await api.post('charges', { operation: nameOf(order), json: { order, amount: 4200 } }).json<{ id: string }>()).id;
  } catch (error) {
    if (isSamekeyError(error)) return error.code;
    throw error;
  }
};

const first = settings.get('pay');
const paid = first === null ? undefined : pay(first);
const body = JSON.stringify({ order: 'bare', amount: 4200 });
const bare = settings.has('bare') ? window.fetch('/charges', { method: 'POST', headers: { 'idempotency-key': 'bare' }, body }) : undefined;

document.addEventListener('visibilitychange', () => {
  const restart = async (): Promise<void> => {
    await worker.stop();
    await startWorker();
  };
  if (!document.hidden) ready = ready.then(restart);
});

window.mocked = {
  pay: order => (order === first && paid ? paid : pay(order)),
  bare: async () => ((await (await bare)?.json()) as { id: string } | undefined)?.id,
  stateOf: async order => (await api.operations.get(nameOf(order)))?.state,
  resultOf: async order => ((await (await api.operations.result(nameOf(order))).json()) as { id: string }).id,
  loseResponse: () => void mock.fault('charge', 'lose-response'),
  hold: () => void (go = new Promise(resolve => (goOn = resolve))),
  goOn: () => goOn(),
  async executions() {
    await mock.load();
    return mock.executions('charge');
  },
  stop: () => void worker.stop(),
  async start() {
    await (ready = startWorker());
  },
  loseWorker: () => navigator.serviceWorker.controller?.postMessage('CLIENT_CLOSE'),
  refused,
  workers: registeredWorkers,
};
