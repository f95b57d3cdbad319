import { createClient } from '../../../src/index.js';
import { registeredWorkers, startAppWorker } from './app-worker.js';

/** What the tests do with the page from outside. */
export interface ShopPage {
  /** The id of the charge. */
  pay(order: string): Promise<string>;
  /** The id of the charge that an operation which was left unsettled ends with. */
  resultOf(order: string): Promise<string>;
  readonly workers: () => Promise<string[]>;
}

declare global {
  interface Window {
    shop: ShopPage;
  }
}

const appScope = new URLSearchParams(location.search).get('app-worker');
if (appScope !== null) await startAppWorker(appScope);

const api = createClient({ prefix: location.origin, scope: 'shop', retry: { delay: () => 50 } });
api.operations.start();

const nameOf = (order: string): string => `order:${order}:charge`;
const idOf = async (response: Response): Promise<string> => ((await response.json()) as { id: string }).id;

window.shop = {
  pay: async order => idOf(await api.post('charges', { operation: nameOf(order), json: { order, amount: 4200 } })),
  resultOf: async order => idOf(await api.operations.result(nameOf(order))),
  workers: registeredWorkers,
};
