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
  /** Calls `run` after `ms`, unless the function it returns is called before. @default made of `sleep` */
  timer?(ms: number, run: () => void, background?: boolean): () => void;
}

/** Above this a platform timer fires at once instead of late (setTimeout keeps 31 bits). */
const MAX_TIMER_MS = 2 ** 31 - 1;

const nothing = (): void => undefined;

/** Platform timers, longer ones in pieces. */
const platformTimer = (ms: number, run: () => void, background = false): (() => void) => {
  let cancel = nothing;
  const start = (left: number): void => {
    const handle = setTimeout(() => (left > MAX_TIMER_MS ? start(left - MAX_TIMER_MS) : run()), Math.min(left, MAX_TIMER_MS));
    // Node and Deno hand out objects, browsers numbers; only the former can be unref'd.
    if (background) (handle as { unref?: () => void }).unref?.();
    cancel = () => clearTimeout(handle);
  };
  start(Math.max(0, ms));
  return () => cancel();
};

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer: platformTimer,
  sleep: (ms, signal, background = false) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const abort = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = platformTimer(ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      }, background);
      signal?.addEventListener('abort', abort, { once: true });
    }),
};

/** Ends a sleep that is not needed any more. A constant, because abort() without a reason makes an error with a stack each time. */
const DONE = Symbol('done');

/** Calls `run` after `ms`; the function it returns cancels that. Most timers are cancelled, so they must cost little. */
export const after = (clock: Clock, ms: number, run: () => void, background = false): (() => void) => {
  if (ms === Number.POSITIVE_INFINITY) return nothing;
  if (clock.timer) return clock.timer(ms, run, background);
  const cancelled = new AbortController();
  clock.sleep(ms, cancelled.signal, background).then(run, nothing);
  return () => cancelled.abort(DONE);
};
