import type { DedupEvents } from './options.js';

/** What observers are told about. */
export interface Call {
  readonly scope?: string | undefined;
  readonly name: string;
  readonly key: string | undefined;
}

/** Tells of a failure. Observers never change what a client gets. */
export const reportFailure = (on: DedupEvents, error: unknown, { name, key }: Call): void => {
  try {
    on.failed?.(error, { name, key });
  } catch {}
};

/** Tells an observer, and waits for it. */
export const tell = async <E extends Call>(on: DedupEvents, listener: ((event: E) => void | Promise<void>) | undefined, event: E): Promise<void> => {
  try {
    await listener?.(event);
  } catch (error) {
    reportFailure(on, error, event);
  }
};
