import { describeContract, type Skip, type TestRunner } from './contract.js';
import { claimCases } from './dedup/claims.js';
import { expiryCases } from './dedup/expiry.js';
import { leaseCases } from './dedup/leases.js';
import type { DedupStoreCase, DedupStoreSubject } from './dedup/subject.js';

export type { DedupStoreCase, DedupStoreSubject };

/** All that is true of a dedup store, as data: run each case on a fresh subject, with any test runner or none. */
export const dedupStoreContract: readonly DedupStoreCase[] = [...claimCases, ...leaseCases, ...expiryCases];

/**
 * Runs the whole contract for a dedup store, each case on a fresh, empty one. A store that passes can be given to `createDedup`.
 *
 * @example
 * describeDedupStore({ describe, it }, 'myDedupStore', () => {
 *   let now = Date.now();
 *   return { store: myDedupStore({ clock: { now: () => now, … } }), pass: ms => { now += ms; } };
 * });
 */
export const describeDedupStore = (
  runner: TestRunner,
  name: string,
  create: () => DedupStoreSubject | Promise<DedupStoreSubject>,
  { skip = [] }: { readonly skip?: readonly Skip[] } = {},
): void => describeContract(runner, name, dedupStoreContract, create, skip);
