/** ms. What "for ever" comes to: databases have no infinite time, and nobody waits for the end of this one. 1000 years. */
const FOREVER_MS = 31_557_600_000_000;

/** A duration, ms, that a store can add to its clock. */
export const storableDuration = (ms: number): number => Math.min(ms, FOREVER_MS);
