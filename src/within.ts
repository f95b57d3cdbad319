import { after, type Clock } from './clock.js';

export interface Bounds {
  readonly clock: Clock;
  /** ms; Infinity for no limit. */
  readonly ms: number;
  /** What the waiting ends with when the time is over. */
  readonly expired: () => unknown;
  /** Ends the waiting from outside. */
  readonly signal?: AbortSignal | undefined;
}

/** The error of a time-out, as the platform names it; made only when the time is over, because its stack costs. */
export const timedOut =
  (message: string): (() => DOMException) =>
  () =>
    new DOMException(message, 'TimeoutError');

/**
 * Waits for work, which goes on, no longer than a time and a signal allow.
 *
 * @param onEnd - hears why the waiting ended early, to end the work too
 * @throws the reason of `signal`, unchanged; what `expired` gives
 */
export const within = <T>({ clock, ms, expired, signal }: Bounds, work: Promise<T>, onEnd?: (reason: unknown) => void): Promise<T> =>
  new Promise<T>((resolve, reject) => {
    const end = (reason: unknown): void => {
      release();
      reject(reason as Error);
      onEnd?.(reason);
    };
    const abort = (): void => end(signal?.reason);
    const cancel = after(clock, ms, () => end(expired()));
    const release = (): void => {
      cancel();
      signal?.removeEventListener('abort', abort);
    };
    work.then(
      value => {
        release();
        resolve(value);
      },
      (error: unknown) => {
        release();
        reject(error as Error);
      },
    );
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
