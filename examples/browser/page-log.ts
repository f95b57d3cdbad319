/** What people did: neither client nor server hears of it, and the timeline tells it too. Kept for all tabs. */
export interface PageEvent {
  /** ms since the epoch. */
  readonly at: number;
  readonly kind: 'opened' | 'clicked';
  /** The order on the page. */
  readonly order: number;
}

const LOG = 'samekey-demo:log';
const ORDER = 'samekey-demo:order';
const FIRST_ORDER = 1042;

/** The log is for looking at; what is older than this is not. */
const MOST_EVENTS = 200;

export const readLog = (): PageEvent[] => JSON.parse(localStorage.getItem(LOG) ?? '[]') as PageEvent[];

export const log = (kind: PageEvent['kind'], order: number): void =>
  localStorage.setItem(LOG, JSON.stringify([...readLog(), { at: Date.now(), kind, order }].slice(-MOST_EVENTS)));

/** The order in the cart, which all tabs share as carts are. */
export const currentOrder = (): number => Number(localStorage.getItem(ORDER) ?? FIRST_ORDER);

export const nextOrder = (): void => localStorage.setItem(ORDER, String(currentOrder() + 1));

export const clearPageLog = (): void => {
  localStorage.removeItem(LOG);
  localStorage.removeItem(ORDER);
};
