import type { Clock } from './clock.js';
import type { DriveResult } from './drive.js';
import type { HeadRef } from './keystore/keystore.js';
import type { Head } from './operation.js';
import { within } from './within.js';

/** What callers learn: what a drive came to, or what the record says. */
export type CallResult =
  | DriveResult
  | { readonly kind: 'stored'; readonly head: Head }
  /** As `result` says, but nothing of it was written. */
  | { readonly kind: 'volatile'; readonly result: DriveResult };

/** What a flight's driver may ask about those who wait for it. */
export interface Interest {
  readonly wanted: () => boolean;
  /** ms until the last of them gives up. */
  readonly left: () => number;
  /** Aborts when the last of them has gone. */
  readonly idle: AbortSignal;
}

/** One operation that is under way in this process. However many callers join it, it is sent once. */
export interface Flight {
  readonly fingerprint: string | undefined;
  /** Begun by a resume pass: it may end before those who joined it want to give up. */
  readonly isPass: boolean;
  readonly result: Promise<CallResult>;
  /**
   * Waits for the result, as long as this caller wants to: its abort or deadline ends its own waiting only.
   *
   * @throws the reason of `signal`, unchanged
   * @returns undefined when `patience` ms are over
   */
  join(signal: AbortSignal | undefined, patience: number): Promise<CallResult | undefined>;
}

/** Where the flight of an operation is found: one place per (scope, id), framed. */
export const placeOf = ({ scope, id }: Pick<HeadRef, 'scope' | 'id'>): string => `${scope.length}:${scope}${id}`;

interface Waiter {
  readonly until: number;
}

export interface Flights {
  get(id: string): Flight | undefined;
  /** Starts one; it is found under `id` until its result is there. */
  start(id: string, traits: Pick<Flight, 'fingerprint' | 'isPass'>, run: (interest: Interest) => Promise<CallResult>): Flight;
  /** Lets no flight wait or try any longer, and resolves when all have ended. */
  land(): Promise<void>;
}

/** Why a driver's pause ends early. */
const UNWANTED = new DOMException('Nobody waits for this operation any more', 'AbortError');

/** Told apart from every reason that a caller may abort with. */
const EXPIRED = new Error('The time of this caller is over');

export const createFlights = (clock: Clock): Flights => {
  const flights = new Map<string, Flight>();
  const landing = new AbortController();

  const start: Flights['start'] = (id, traits, run) => {
    const waiters = new Set<Waiter>();
    const idle = new AbortController();
    const land = (): void => idle.abort(UNWANTED);
    landing.signal.addEventListener('abort', land, { once: true });
    // Real time, not the store's: how long somebody waits does not depend on what the record has seen.
    const interest: Interest = {
      wanted: () => waiters.size > 0 && !landing.signal.aborted,
      left: () => Math.max(0, ...[...waiters].map(({ until }) => until - clock.now())),
      idle: idle.signal,
    };
    const leave = (waiter: Waiter): void => {
      waiters.delete(waiter);
      if (waiters.size === 0 && flights.get(id) === flight) idle.abort(UNWANTED);
    };
    const join: Flight['join'] = async (signal, patience) => {
      const waiter = { until: clock.now() + patience };
      waiters.add(waiter);
      try {
        return await within({ clock, ms: patience, expired: () => EXPIRED, signal }, flight.result);
      } catch (error) {
        if (error === EXPIRED) return undefined;
        throw error;
      } finally {
        leave(waiter);
      }
    };
    // Begins only after the first caller has joined, so that the driver never finds itself unwanted at once.
    const result = Promise.resolve().then(() => run(interest)).finally(() => {
      landing.signal.removeEventListener('abort', land);
      flights.delete(id);
    });
    result.catch(() => undefined);
    const flight: Flight = { ...traits, result, join };
    flights.set(id, flight);
    return flight;
  };

  return {
    get: id => flights.get(id),
    start,
    land: async () => {
      landing.abort(UNWANTED);
      await Promise.allSettled([...flights.values()].map(({ result }) => result));
    },
  };
};
