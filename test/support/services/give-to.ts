import type { TestProject } from 'vitest/node';
import type { PostgresServer } from './find-postgres.js';

/** Gives a server to the tests of a project, under the name by which test/support/sql-servers.ts looks for it. */
export const giveTo = ({ config }: TestProject, { url, stop }: PostgresServer): (() => Promise<void>) => {
  config.env = { ...config.env, SAMEKEY_POSTGRES: url };
  return stop;
};
