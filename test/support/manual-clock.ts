import type { Clock } from '../../src/clock.js';

export interface ManualClock extends Clock {
  /** Sleepers now. */
  readonly sleeping: number;
  /** Lets `ms` pass: wakes every sleeper at its time, in order, and gives each a turn to do what it woke for. */
  advance(ms: number): Promise<void>;
}

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** One turn of the event loop and what it has queued; work of other threads (hashing) may take more. */
const turn = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 0));

/** A clock that stands still until it is told to move. */
export const manualClock = (start: number = Date.UTC(2030, 0, 1)): ManualClock => {
  let time = start;
  const sleepers = new Set<Sleeper>();
  const nextBefore = (end: number): Sleeper | undefined => {
    const due = [...sleepers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
    return due[0];
  };
  return {
    now: () => time,
    monotonic: () => time - start,
    get sleeping() {
      return sleepers.size;
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error);
        const abort = (): void => {
          sleepers.delete(sleeper);
          reject(signal?.reason as Error);
        };
        const sleeper: Sleeper = {
          at: time + ms,
          wake: () => {
            signal?.removeEventListener('abort', abort);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', abort, { once: true });
        return undefined;
      }),
    async advance(ms) {
      const end = time + ms;
      await turn();
      for (let sleeper = nextBefore(end); sleeper; sleeper = nextBefore(end)) {
        time = Math.max(time, sleeper.at);
        sleepers.delete(sleeper);
        sleeper.wake();
        await turn();
      }
      time = end;
      await turn();
    },
  };
};
