import { describe, it } from 'vitest';
import { postgresDedupStore } from '../../src/server/stores/postgres.js';
import { describeDedupStore } from '../../src/testing/index.js';
import { freshPostgres } from './support/postgres.js';

/** More than any case takes on a busy machine. */
const DRIFT_MS = 5_000;

for (const mode of ['tx', 'lease'] as const) {
  describeDedupStore({ describe, it }, `postgres, ${mode}`, async () => {
    const { database, pass, drop } = await freshPostgres();
    return { store: postgresDedupStore(database, { mode }), pass, drift: DRIFT_MS, dispose: drop };
  });
}
