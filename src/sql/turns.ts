import { after, type Clock } from '../clock.js';

/** Runs work one piece at a time, in order of arrival. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Turns on what only one may use.
 *
 * @param limit - ms that anybody waits for a turn
 * @param tooLong - what a wait beyond the limit rejects with
 */
export const createTurns = (clock: Clock, limit: number, tooLong: () => Error): Turns => {
  let isTaken = false;
  const waiting = new Set<() => void>();
  const myTurn = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const begin = (): void => {
        cancel();
        resolve();
      };
      const cancel = after(clock, limit, () => {
        waiting.delete(begin);
        reject(tooLong());
      });
      waiting.add(begin);
    });
  return async work => {
    if (isTaken) await myTurn();
    isTaken = true;
    try {
      return await work();
    } finally {
      // Whoever leaves hands its turn over, so that nobody slips in between.
      const [next] = waiting;
      if (next) {
        waiting.delete(next);
        next();
      } else isTaken = false;
    }
  };
};
