import type { Clock } from '../../src/clock.js';

interface Timer {
  readonly due: number;
  readonly fire: () => void;
}

export interface VirtualClock extends Clock {
  /** Moves wall time alone, as a person or NTP does. */
  shift(ms: number): void;
  /** Moves time, firing what falls due, and lets what it woke settle. */
  advance(ms: number): Promise<void>;
  /** How long each sleep was, in the order in which they were asked for; background sleeps excluded. */
  readonly sleeps: readonly number[];
}

/** Turns of the event loop that the deepest chain of promises and store commits needs to come to rest. */
const TURNS = 50;

/** Lets everything that can go on without time go on. */
export const settleDown = async (turns = TURNS): Promise<void> => {
  for (let turn = 0; turn < turns; turn += 1) await new Promise(resolve => setImmediate(resolve));
};

/**
 * A clock that costs no time: whenever everything waits, it jumps to the next timer. With `auto: false` it moves by
 * `advance` only.
 */
export const virtualClock = ({ start = Date.UTC(2026, 0, 1), auto = true } = {}): VirtualClock => {
  const timers = new Set<Timer>();
  const sleeps: number[] = [];
  let elapsed = 0;
  let shifted = 0;
  let pumping = false;

  const next = (): Timer | undefined => [...timers].sort((a, b) => a.due - b.due)[0];
  const fire = (timer: Timer): void => {
    timers.delete(timer);
    elapsed = Math.max(elapsed, timer.due);
    timer.fire();
  };
  const pump = async (): Promise<void> => {
    if (pumping || !auto) return;
    pumping = true;
    for (;;) {
      await settleDown();
      const timer = next();
      if (!timer) break;
      fire(timer);
    }
    pumping = false;
  };

  return {
    sleeps,
    now: () => start + elapsed + shifted,
    monotonic: () => elapsed,
    shift: ms => (shifted += ms),
    sleep: (ms, signal, background = false) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error);
        if (!background) sleeps.push(ms);
        const abort = (): void => {
          timers.delete(timer);
          reject(signal?.reason as Error);
        };
        const timer: Timer = {
          due: elapsed + Math.max(0, ms),
          fire: () => {
            signal?.removeEventListener('abort', abort);
            resolve();
          },
        };
        signal?.addEventListener('abort', abort, { once: true });
        timers.add(timer);
        void pump();
      }),
    advance: async ms => {
      const end = elapsed + ms;
      await settleDown();
      for (let timer = next(); timer && timer.due <= end; timer = next()) {
        fire(timer);
        await settleDown();
      }
      elapsed = end;
      await settleDown();
    },
  };
};
