import { readCases } from './keystore/reads.js';
import { sharingCases } from './keystore/sharing.js';
import type { KeyStoreCase, KeyStoreSubject } from './keystore/subject.js';
import { writeCases } from './keystore/writes.js';

export type { KeyStoreCase, KeyStoreSubject };

/** All that is true of a key store, as data: run each case on a fresh subject, with any test runner or none. */
export const keyStoreContract: readonly KeyStoreCase[] = [...writeCases, ...readCases, ...sharingCases];

/** The three functions of a test runner that the suite needs; vitest, jest and node:test all have them. */
export interface TestRunner {
  describe(name: string, define: () => void): unknown;
  it: ((name: string, run: () => Promise<void>) => unknown) & { skip(name: string, run: () => Promise<void>): unknown };
}

/** A case that cannot hold for a store, and why. */
export interface Skip {
  /** The name of the case, word for word. */
  readonly case: string;
  readonly reason: string;
}

export interface DescribeKeyStoreOptions {
  readonly skip?: readonly Skip[];
}

const knownNames: ReadonlySet<string> = new Set(keyStoreContract.map(({ name }) => name));

const reasonsOf = (skips: readonly Skip[]): Map<string, string> => {
  const unknown = skips.find(skip => !knownNames.has(skip.case));
  if (unknown) throw new Error(`No case of the key store contract is called '${unknown.case}'. Take the name from keyStoreContract.`);
  const silent = skips.find(skip => skip.reason.trim() === '');
  if (silent) throw new Error(`The case '${silent.case}' is skipped without a reason. Say why it cannot hold for this store.`);
  return new Map(skips.map(skip => [skip.case, skip.reason]));
};

const runOn = async (one: KeyStoreCase, create: () => KeyStoreSubject | Promise<KeyStoreSubject>): Promise<void> => {
  const subject = await create();
  try {
    await one.run(subject);
  } finally {
    await subject.dispose?.();
  }
};

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
  { describe, it }: TestRunner,
  name: string,
  create: () => KeyStoreSubject | Promise<KeyStoreSubject>,
  { skip = [] }: DescribeKeyStoreOptions = {},
): void => {
  const reasons = reasonsOf(skip);
  describe(`${name} keeps the contract of key stores`, () => {
    for (const one of keyStoreContract) {
      const reason = reasons.get(one.name);
      if (reason === undefined) it(one.name, () => runOn(one, create));
      else it.skip(`${one.name} (skipped: ${reason})`, () => runOn(one, create));
    }
  });
};
