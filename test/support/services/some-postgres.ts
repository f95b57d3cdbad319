import type { TestProject } from 'vitest/node';
import { findPostgres } from './find-postgres.js';
import { giveTo } from './give-to.js';

/** Before the tests of a project: whatever PostgreSQL there is. */
export const setup = async (project: TestProject): Promise<() => Promise<void>> => giveTo(project, await findPostgres(process.env['SAMEKEY_POSTGRES']));
