import { newKey } from '../../src/key.js';

/** Databases of one origin are shared by all test files; each test has its own. */
export const freshName = (): string => `samekey-test-${newKey()}`;

export const dropDatabase = (name: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.addEventListener('success', () => resolve());
    request.addEventListener('error', () => reject(request.error as DOMException));
  });
