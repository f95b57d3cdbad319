/** ms. What "for ever" comes to: databases have no infinite time, and nobody waits for the end of this one. 1000 years. */
const FOREVER_MS = 31_557_600_000_000;

/**
 * A duration that a store can add to its clock.
 *
 * @param least - ms
 * @throws TypeError for what is none
 */
export const durationOf = (name: string, ms: number, least = 0): number => {
  if (typeof ms === 'number' && ms >= least) return Math.min(ms, FOREVER_MS);
  throw new TypeError(`${name} is ${String(ms)}; ms were expected, ${least} or more.`);
};
