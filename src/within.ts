import type { Clock } from './clock.js';

export interface Bounds {
  readonly clock: Clock;
  /** ms; Infinity for no limit. */
  readonly ms: number;
  /** What the work is ended with when the time is over. */
  readonly expired: () => unknown;
  /** Ends the work from outside. */
  readonly signal?: AbortSignal | undefined;
}

/** Ends a timer that is not needed any more. A constant, because abort() without a reason makes an error with a stack each time. */
export const DONE: unique symbol = Symbol('done');

/**
 * Does work that may take only so long, and that somebody may end. It rejects in time also when the work does not listen
 * to the signal it is given.
 *
 * @throws the reason of `signal`, unchanged; what `expired` gives
 */
export const within = async <T>({ clock, ms, expired, signal }: Bounds, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const finished = new AbortController();
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason as Error), { once: true });
  });
  const abort = (): void => controller.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  if (ms !== Number.POSITIVE_INFINITY) {
    clock.sleep(ms, finished.signal).then(
      () => controller.abort(expired()),
      () => undefined,
    );
  }
  try {
    return await Promise.race([work(controller.signal), ended]);
  } finally {
    signal?.removeEventListener('abort', abort);
    finished.abort(DONE);
  }
};
