import type { Clock } from './clock.js';
import type { ResumeOptions, ResumeReport } from './resume.js';

/** A loop of resume passes. */
export interface Runner extends AsyncDisposable {
  /** Ends the loop and waits for the pass under way. */
  stop(): Promise<void>;
}

/** Longest time between two passes, ms: other processes and tabs leave work behind without telling. */
const IDLE_MS = 30_000;

/** Shortest time between two passes, ms, whatever is due. */
const BREATH_MS = 250;

interface Emitter {
  addEventListener?(type: string, listener: () => void): void;
  removeEventListener?(type: string, listener: () => void): void;
}

/** What tells a page that waiting may be over. */
const WAKE_EVENTS: readonly (readonly [target: 'window' | 'document', type: string])[] = [
  ['window', 'online'],
  ['window', 'pageshow'],
  ['document', 'visibilitychange'],
];

export interface RunnerOptions {
  readonly clock: Clock;
  readonly now: () => number;
  readonly resume: (options?: ResumeOptions) => Promise<ResumeReport>;
  /** A pass that failed as a whole: the store is not there. */
  readonly onError: (error: unknown) => void;
  readonly onStop: () => void;
}

/** Starts the loop. Its timers do not keep a process alive. */
export const startRunner = ({ clock, now, resume, onError, onStop }: RunnerOptions, options: ResumeOptions = {}): Runner => {
  const stopped = new AbortController();
  let nap = new AbortController();
  const wake = (): void => nap.abort();

  const emitters = WAKE_EVENTS.map(([target, type]) => [(target === 'window' ? globalThis : globalThis.document) as Emitter | undefined, type] as const);
  for (const [emitter, type] of emitters) emitter?.addEventListener?.(type, wake);

  const pause = async (ms: number): Promise<void> => {
    nap = new AbortController();
    if (stopped.signal.aborted) return;
    await clock.sleep(ms, nap.signal, true).catch(() => undefined);
  };

  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      let next: number | undefined;
      try {
        next = (await resume(options)).nextAttemptAt;
      } catch (error) {
        onError(error);
      }
      await pause(Math.min(IDLE_MS, Math.max(BREATH_MS, (next ?? Number.POSITIVE_INFINITY) - now())));
    }
  };

  const running = loop();
  const stop = async (): Promise<void> => {
    stopped.abort();
    onStop();
    wake();
    for (const [emitter, type] of emitters) emitter?.removeEventListener?.(type, wake);
    await running;
  };
  return { stop, [Symbol.asyncDispose]: stop };
};
