import { createClient, isSamekeyError, operationOf } from '../../../src/index.js';

/** What came of a call. */
export interface Paid {
  readonly id?: string;
  readonly replayed?: string | false | undefined;
  readonly code?: string;
  readonly message?: string;
  /** ms from now until the next attempt is due. */
  readonly dueIn?: number | undefined;
}

/** What the tests do with the page from outside. */
export interface CrossOriginPage {
  pay(order: string): Promise<Paid>;
  /** State and key of the operation of an order. */
  recordOf(order: string): Promise<{ readonly state: string; readonly key: string } | undefined>;
}

declare global {
  interface Window {
    crossOrigin: CrossOriginPage;
  }
}

const api = createClient({
  prefix: new URLSearchParams(location.search).get('api') ?? '', scope: 'shop', totalTimeout: 20_000, retry: { limit: 2, delay: () => 50 },
});

const nameOf = (order: string): string => `order:${order}:charge`;

window.crossOrigin = {
  async pay(order) {
    try {
      const response = await api.post('charges', { operation: nameOf(order), json: { order, amount: 4200 } });
      return { id: ((await response.json()) as { id: string }).id, replayed: operationOf(response)?.replayed };
    } catch (error) {
      if (!isSamekeyError(error)) throw error;
      const { nextAttemptAt } = error as { nextAttemptAt?: number };
      return { code: error.code, message: error.message, dueIn: nextAttemptAt === undefined ? undefined : nextAttemptAt - Date.now() };
    }
  },
  async recordOf(order) {
    const record = await api.operations.get(nameOf(order));
    return record && { state: record.state, key: record.key };
  },
};
