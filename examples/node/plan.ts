import { createHash } from 'node:crypto';
import type { Moment } from './events.js';

/** A fraction in [0, 1) that depends on its arguments only: one seed, one plan, whatever happens in which order. */
const fraction = (...parts: readonly (string | number)[]): number =>
  createHash('sha256').update(parts.join('/')).digest().readUInt32BE() / 2 ** 32;

/** What the network does to one request. */
export type Fault = 'none' | 'lose-request' | 'unavailable' | 'lose-response' | 'cut-body';

const FAULTS: readonly (readonly [upTo: number, fault: Fault])[] = [
  [0.12, 'lose-request'],
  [0.24, 'unavailable'],
  [0.42, 'lose-response'],
  [0.54, 'cut-body'],
  [1, 'none'],
];

/** From this request of an order on the network behaves, so that the demo ends. */
const LAST_FAULTY_REQUEST = 4;

/** @param nth - 1 for the first request of the order that arrives */
export const faultOf = (seed: number, order: string, nth: number): Fault => {
  if (nth > LAST_FAULTY_REQUEST) return 'none';
  const drawn = fraction(seed, 'fault', order, nth);
  return FAULTS.find(([upTo]) => drawn < upTo)?.[1] ?? 'none';
};

/** How many orders take longer than the shop waits, so that it asks again while the API is still at work. */
const SLOW_SHARE = 1 / 6;
const SLOW_MS = 1_100;

/** ms that charging takes. @param run - 1 for the first charge of the order; only that one can be slow */
export const workOf = (seed: number, order: string, run: number): number => {
  const drawn = fraction(seed, 'work', order);
  return run === 1 && drawn < SLOW_SHARE ? SLOW_MS : 40 + 120 * drawn;
};

/** When the shop is killed: at the `nth` such moment since it was started. */
export interface Kill {
  readonly moment: Moment;
  readonly nth: number;
}

const KILLS = 6;

/** In turn, so that every seed has each: before the charge, between charge and answer, as the answer leaves. */
const MOMENTS: readonly Moment[] = ['charged', 'arrived', 'answered'];

export const killsOf = (seed: number): readonly Kill[] =>
  Array.from({ length: KILLS }, (_, turn) => ({
    moment: MOMENTS[turn % MOMENTS.length] ?? 'charged',
    nth: 2 + Math.floor(4 * fraction(seed, 'kill', turn)),
  }));
