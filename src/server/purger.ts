import type { Clock } from '../clock.js';
import { checkStartPurgeOptions } from './option-kinds.js';
import type { PurgeOptions, PurgeReport } from './store.js';

export interface StartPurgeOptions extends PurgeOptions {
  /** ms between two purges. @default 60_000 */
  readonly every?: number | undefined;
  /** Hears what each purge did; `indeterminate` and `oldestIndeterminateAt` are worth an alarm. */
  readonly onPurged?: ((report: PurgeReport) => void) | undefined;
  /** Hears why a purge failed; the next one comes all the same. @default console.error */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Purges that go on until they are stopped. */
export interface Purger extends AsyncDisposable {
  /** Resolves when no purge runs any more. */
  stop(): Promise<void>;
}

const EVERY_MS = 60_000;

// oxlint-disable-next-line no-console -- where nobody listens a failure must still not vanish
const report = (error: unknown): void => console.error('A purge of the dedup store failed; the next one will try again.', error);

/**
 * Purges at once and then every so often, batch by batch until nothing is left that is due. It keeps no process alive.
 *
 * @throws TypeError for options by which it would purge without a pause, or never
 */
export const startPurger = (purge: (options: PurgeOptions) => Promise<PurgeReport>, clock: Clock, options: StartPurgeOptions = {}): Purger => {
  checkStartPurgeOptions(options);
  const { every = EVERY_MS, onPurged, onError = report, ...batch } = options;
  const stopped = new AbortController();
  const purgeAll = async (): Promise<void> => {
    for (let more = true; more && !stopped.signal.aborted; ) {
      const done = await purge(batch);
      onPurged?.(done);
      more = done.more;
    }
  };
  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      // Also when it is the listener that fails: nobody waits for this loop.
      await purgeAll().catch(onError).catch(report);
      // It rejects when the purger is stopped.
      await clock.sleep(every, stopped.signal, true).catch(() => {});
    }
  };
  const done = loop();
  const stop = async (): Promise<void> => {
    stopped.abort();
    await done;
  };
  return { stop, [Symbol.asyncDispose]: stop };
};
