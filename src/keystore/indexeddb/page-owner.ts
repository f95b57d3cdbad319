import { StoreUnavailableError } from '../../errors.js';
import { newKey } from '../../key.js';

/** Who a page or a worker is, as an owner of leases. */
export interface PageOwner {
  /** A random name, held as a Web Lock that the browser releases when the page dies. The first call takes it. */
  id(): Promise<string>;
  /** `unknown` where there are no Web Locks (pages on plain http), and for names that no page gave itself. */
  liveness(owner: string): Promise<'alive' | 'dead' | 'unknown'>;
  /** Gives the name up: it is dead from now on, and the next `id` is another one. */
  release(): Promise<void>;
}

type Release = () => Promise<void>;

const PREFIX = 'samekey:page:';

const hold = (locks: LockManager, name: string): Promise<Release> =>
  new Promise((resolve, reject) => {
    const over: Promise<void> = locks.request(name, () => new Promise<void>(end => resolve(() => (end(), over))));
    over.catch((cause: unknown) => reject(new StoreUnavailableError(`This page may not hold a Web Lock (${String(cause)}), so no tab could tell that it lives.`, { cause })));
  });

/** @param locks - @default navigator.locks */
export const pageOwner = (locks: LockManager | null | undefined = globalThis.navigator?.locks): PageOwner => {
  let name: string | undefined;
  let held: Promise<Release> | undefined;

  const take = async (): Promise<void> => {
    if (!locks || name === undefined) return;
    held ??= hold(locks, name);
    await held.catch(error => {
      held = undefined;
      throw error;
    });
  };
  const free = async (): Promise<void> => {
    const release = await held;
    held = undefined;
    await release?.();
  };
  // A page that holds a lock is kept out of some browsers' back/forward cache, and while it sleeps there others may take over.
  const onPageHide = ({ persisted }: PageTransitionEvent): void => void (persisted && free());
  const onPageShow = ({ persisted }: PageTransitionEvent): void => void (persisted && take());

  return {
    async id() {
      name ??= PREFIX + newKey();
      const taken = name;
      globalThis.addEventListener?.('pagehide', onPageHide);
      globalThis.addEventListener?.('pageshow', onPageShow);
      await take();
      return taken;
    },
    async liveness(owner) {
      if (!locks || !owner.startsWith(PREFIX)) return 'unknown';
      // Shared, so that two pages that ask at once do not take each other for the owner.
      return locks.request(owner, { mode: 'shared', ifAvailable: true }, lock => (lock ? 'dead' : 'alive'));
    },
    async release() {
      name = undefined;
      globalThis.removeEventListener?.('pagehide', onPageHide);
      globalThis.removeEventListener?.('pageshow', onPageShow);
      await free();
    },
  };
};
