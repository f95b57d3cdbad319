/**
 * The only door for time. Everything that waits or asks what time it is takes a {@link Clock}, so a test owns both.
 */
export interface Clock {
  /** Wall time, ms since the epoch. It may jump; {@link Clock.monotonic} may not. */
  now(): number;
  /** ms since some fixed point of this process, never going back. A clock without it is trusted as it is. */
  monotonic?(): number;
  /**
   * Resolves after `ms`; rejects with `signal.reason` as soon as `signal` aborts.
   *
   * @param background - true lets a process end while this timer is pending
   */
  sleep(ms: number, signal?: AbortSignal, background?: boolean): Promise<void>;
}

/** Above this a platform timer fires at once instead of late (setTimeout keeps 31 bits). */
const MAX_TIMER_MS = 2 ** 31 - 1;

const timer = (ms: number, signal: AbortSignal | undefined, background: boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(handle);
      reject(signal?.reason as Error);
    };
    const handle = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    // Node and Deno hand out objects, browsers numbers; only the former can be unref'd.
    if (background) (handle as { unref?: () => void }).unref?.();
    signal?.addEventListener('abort', abort, { once: true });
  });

/** The machine's clock. Waits longer than a platform timer can hold are slept in pieces. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal, background = false) {
    signal?.throwIfAborted();
    let left = Math.max(0, ms);
    for (; left > MAX_TIMER_MS; left -= MAX_TIMER_MS) await timer(MAX_TIMER_MS, signal, background);
    await timer(left, signal, background);
  },
};
