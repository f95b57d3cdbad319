import { StoreUnavailableError } from '../../errors.js';
import { isBusy } from './failure.js';
import { canShare } from './machine.js';
import type { Machine } from './machine.js';

/** A transaction takes milliseconds, a checkpoint tens of them. Who holds the lock longer than this hangs. */
export const BUSY_LIMIT_MS = 5000;

/** Pause before a busy database is tried again, ms; jittered, so that processes do not meet again. */
const PAUSE_MS = 2;

export const lockedOut = (path: string, machine: Machine, cause: unknown): StoreUnavailableError =>
  new StoreUnavailableError(
    canShare(machine)
      ? `${path} has been locked by another process for ${BUSY_LIMIT_MS} ms. Look for a process that hangs in a transaction on it.`
      : `${path} is open elsewhere, and SQLite ${machine.sqliteVersion} cannot share it safely (its write-ahead log can lose pages). ` +
        'Run one process per directory, or update Node to 24.15 or later, which carries SQLite 3.51.3.',
    { cause },
  );

export type Patiently = <T>(work: () => T, onBusy?: () => void) => Promise<T>;

/** Waits outside SQLite for the lock of another process, so that the event loop goes on. */
export const patience =
  (path: string, machine: Machine): Patiently =>
  async (work, onBusy) => {
    const time = (): number => machine.clock.monotonic?.() ?? machine.clock.now();
    for (const since = time(); ; await machine.clock.sleep(PAUSE_MS * (0.5 + machine.random()))) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (time() - since > BUSY_LIMIT_MS) throw lockedOut(path, machine, error);
        onBusy?.();
      }
    }
  };
