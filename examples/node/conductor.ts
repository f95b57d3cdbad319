import type { ApiEvent, DemoEvent } from './events.js';
import { killsOf, type Kill } from './plan.js';
import { startPaymentApi, startShop, type Shop } from './processes.js';

export interface PlayOptions {
  readonly seed: number;
  readonly shop: 'shop.ts' | 'shop-without-samekey.ts';
  /** A payment API that does not look at keys. */
  readonly ignoreKeys: boolean;
  /** Where the shop keeps what must outlive it. */
  readonly folder: string;
  /** Hears of everything, in order. */
  readonly tell: (event: DemoEvent) => void;
  /** Ends the play early. */
  readonly signal: AbortSignal;
}

type Told = ApiEvent | { readonly kind: 'started' | 'killed' | 'finished' };

/** Kills a shop at its planned moment. Only its own requests count, not what the API still does for the shop before. */
const executioner = (shop: Shop, kill: Kill | undefined): ((event: Told) => void) => {
  const asked = new Set<string>();
  let left = kill?.nth ?? Infinity;
  return event => {
    if (event.kind === 'arrived') asked.add(event.order);
    if (event.kind === kill?.moment && asked.has(event.order) && --left === 0) shop.kill();
  };
};

/**
 * Starts the payment API once and the shop again and again, killing each shop as the seed has planned, until one has
 * gone through all its orders.
 *
 * @returns what the last shop believes: order to charge
 */
export const play = async ({ seed, shop: file, ignoreKeys, folder, tell, signal }: PlayOptions): Promise<ReadonlyMap<string, string>> => {
  const began = performance.now();
  const kills = [...killsOf(seed)];
  let watch = (_event: Told): void => {};
  const note = (event: Told): void => {
    tell({ at: performance.now() - began, ...event });
    watch(event);
  };

  const api = await startPaymentApi({ SEED: String(seed), IGNORE_KEYS: String(ignoreKeys) }, note);
  try {
    for (;;) {
      signal.throwIfAborted();
      note({ kind: 'started' });
      const shop = startShop(file, { PAYMENT_API: api.origin, SHOP_FOLDER: folder }, signal);
      watch = executioner(shop, kills.shift());
      const finished = await Promise.race([shop.finished, api.died]);
      note({ kind: finished ? 'finished' : 'killed' });
      if (finished) return shop.receipts;
    }
  } finally {
    await api.stop();
  }
};
