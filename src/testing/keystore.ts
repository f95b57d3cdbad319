import { describeContract } from './contract.js';
import type { Skip, TestRunner } from './contract.js';
import { readCases } from './keystore/reads.js';
import { sharingCases } from './keystore/sharing.js';
import type { KeyStoreCase, KeyStoreSubject } from './keystore/subject.js';
import { writeCases } from './keystore/writes.js';

export type { KeyStoreCase, KeyStoreSubject, Skip, TestRunner };

/** All that is true of a key store, as data: run each case on a fresh subject, with any test runner or none. */
export const keyStoreContract: readonly KeyStoreCase[] = [...writeCases, ...readCases, ...sharingCases];

export interface DescribeKeyStoreOptions {
  /** Cases that cannot hold for this store. @default none */
  readonly skip?: readonly Skip[];
}

/**
 * Runs the whole contract for a store, each case on a fresh subject. A store that passes can be given to `createClient`.
 *
 * @example
 * import { describe, it } from 'vitest'; // or 'node:test', or jest's globals
 * describeKeyStore({ describe, it }, 'myKeyStore', () => {
 *   const database = openEmptyDatabase();
 *   return { open: () => myKeyStore(database), spoil: ref => database.damage(ref), dispose: () => database.drop() };
 * });
 */
export const describeKeyStore = (
  runner: TestRunner,
  name: string,
  create: () => KeyStoreSubject | Promise<KeyStoreSubject>,
  { skip = [] }: DescribeKeyStoreOptions = {},
): void => describeContract(runner, `${name} keeps the contract of key stores`, keyStoreContract, create, skip);
