import type { Clock } from '../clock.js';
import { LeaseLostError } from './errors.js';
import type { Hold } from './record.js';
import type { DedupStore } from './store.js';

/** A hold that is kept alive while its run goes on. */
export interface Lease {
  /** Aborts with `LeaseLostError` when somebody else may have taken over. */
  readonly signal: AbortSignal;
  /** Whether {@link Lease.startEffect} has been acknowledged. */
  readonly effectStarted: boolean;
  /** Writes down that an effect may happen from now on; rejects when it must not. */
  startEffect(): Promise<void>;
  /** Ends the renewals. */
  end(): void;
}

/** Two renewals may get lost before the lease is. */
const RENEWALS_PER_LEASE = 3;

/** ms before each further try of a store call that failed. Short: a client waits, and the lease runs. */
const RETRIES_MS: readonly number[] = [20, 100, 500];

/** Repeats a store call that failed. It must be safe to repeat, as all are that name their owner and fence. */
export const insist = async <T>(clock: Clock, call: () => Promise<T>): Promise<T> => {
  for (const delay of RETRIES_MS) {
    try {
      return await call();
    } catch {
      await clock.sleep(delay);
    }
  }
  return call();
};

/** Keeps a hold by renewing it at a third of its lease. `lease` in ms. */
export const keepLease = (store: Pick<DedupStore, 'renew'>, clock: Clock, hold: Hold, lease: number): Lease => {
  const lost = new AbortController();
  const ended = new AbortController();
  let effectStarted = false;

  const lose = (): LeaseLostError => {
    const error = new LeaseLostError(`The lease on key "${hold.key}" is lost: stop, and begin no further effect. Another request may run it now.`);
    lost.abort(error);
    return error;
  };
  const beat = async (): Promise<boolean> => {
    await clock.sleep(lease / RENEWALS_PER_LEASE, ended.signal, true);
    // A store that cannot be reached says nothing about the lease; the next beat asks again.
    return store.renew(hold, lease, false).catch(() => true);
  };
  const renew = async (): Promise<void> => {
    while (await beat());
    if (!ended.signal.aborted) lose();
  };
  // It rejects when the run ends and cuts the sleep short.
  renew().catch(() => {});

  return {
    signal: lost.signal,
    get effectStarted() {
      return effectStarted;
    },
    async startEffect() {
      if (lost.signal.aborted || !(await insist(clock, () => store.renew(hold, lease, true)))) throw lose();
      effectStarted = true;
    },
    end: () => ended.abort(),
  };
};
