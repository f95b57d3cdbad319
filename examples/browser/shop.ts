import { createClient, isSamekeyError, type Client } from 'samekey';

export interface Order {
  readonly id: number;
  /** Cents. */
  readonly amount: number;
}

/** Whoever is signed in. */
export const CUSTOMER = 'customer-7';

// Copy from here. Operations are kept in IndexedDB, which all tabs share.
export const api: Client = createClient({ prefix: new URL('/api', location.href), scope: CUSTOMER });

/** May be called as often as one likes: the same order is the same operation. */
export const pay = async (order: Order): Promise<void> => {
  try {
    await api.post('charges', { operation: `order:${order.id}:charge`, json: order, again: true }).json();
  } catch (error) {
    // Not failed, and not forgotten: `api.operations.start()` goes on with it, in this page or in the next.
    if (!isSamekeyError(error, 'OPERATION_PENDING')) throw error;
  }
};
// To here. After a reload: `api.operations.start()`, as in main.ts.
