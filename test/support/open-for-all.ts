import { afterAll, beforeAll, beforeEach, type TestContext } from 'vitest';
import { NoServerError } from './sql-servers.js';

type Close = () => unknown;

/**
 * Opens what the tests of a file, or of a describe, share; `open` gives what closes it. Where its server is not there
 * they are skipped, and say why. Comes before the other hooks that use it.
 *
 * @param timeout - ms that opening may take @default that of hooks
 */
export const openForAll = (open: () => Promise<Close>, timeout?: number): void => {
  let close: Close | undefined;
  let absent: NoServerError | undefined;
  beforeAll(async () => {
    try {
      close = await open();
    } catch (error) {
      if (!(error instanceof NoServerError)) throw error;
      absent = error;
    }
  }, timeout);
  beforeEach(context => context.skip(absent !== undefined, absent?.message));
  afterAll(() => close?.() as Promise<void>);
};

/** What one test opens for itself; where its server is not there the test is skipped, and says why. */
export const openOrSkip = async <T>(context: TestContext, opening: Promise<T>): Promise<T> => {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof NoServerError) context.skip(error.message);
    throw error;
  }
};
