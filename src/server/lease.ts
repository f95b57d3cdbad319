import { after, type Clock } from '../clock.js';
import { timedOut, within } from '../within.js';
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

/** ms that the note of an effect may take. Beside a transaction of the run it needs a second connection, which a pool may never give. */
const NOTE_TIMEOUT = 10_000;

const noConnection = timedOut(
  'effectStarted() was not acknowledged in 10 s, so the effect must not begin. It needs a connection beside that of the transaction: make the pool larger than the number of runs at once. On SQLite, which has one writer at a time, call it before transaction().',
);

/** Waits for the note that an effect may begin, and repeats it where it failed. */
export const insistOnNote = <T>(clock: Clock, note: () => Promise<T>): Promise<T> =>
  within({ clock, ms: NOTE_TIMEOUT, expired: noConnection }, insist(clock, note));

/** Keeps a hold by renewing it at a third of its lease. `lease` in ms. */
export const keepLease = (store: Pick<DedupStore, 'renew'>, clock: Clock, hold: Hold, lease: number): Lease => {
  const lost = new AbortController();
  let effectStarted = false;
  let ended = false;
  let cancel = (): void => undefined;

  const lose = (): LeaseLostError => {
    const error = new LeaseLostError(`The lease on key "${hold.key}" is lost: stop, and begin no further effect. Another request may run it now.`);
    lost.abort(error);
    return error;
  };
  const beat = async (): Promise<void> => {
    // A store that cannot be reached says nothing about the lease; the next beat asks again.
    const held = await store.renew(hold, lease, false).catch(() => true);
    if (ended) return;
    if (held) schedule();
    else lose();
  };
  const schedule = (): void => {
    cancel = after(clock, lease / RENEWALS_PER_LEASE, () => void beat(), true);
  };
  schedule();

  return {
    signal: lost.signal,
    get effectStarted() {
      return effectStarted;
    },
    async startEffect() {
      if (lost.signal.aborted || !(await insistOnNote(clock, () => store.renew(hold, lease, true)))) throw lose();
      effectStarted = true;
    },
    end() {
      ended = true;
      cancel();
    },
  };
};
