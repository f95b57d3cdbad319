import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'vitest';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { migrate } from '../../src/server/migrate.js';
import { fromNodeSqlite } from '../../src/sql/index.js';
import { describeDedupStore } from '../../src/testing/index.js';
import { manualClock } from '../support/manual-clock.js';
import { describeConformance } from './conformance/suite.js';
import { freshSqlite } from './support/sqlite.js';

/** More than any case takes on a busy machine. */
const DRIFT_MS = 10_000;

describeDedupStore({ describe, it }, 'sqlite, on a file and the time of the machine', async () => {
  const { database, pass, close } = await freshSqlite();
  return { store: sqliteDedupStore(database), pass, drift: DRIFT_MS, dispose: close };
});

describeDedupStore({ describe, it }, 'sqlite, in memory and on a clock of its own', async () => {
  const clock = manualClock();
  const sqlite = new DatabaseSync(':memory:');
  const database = fromNodeSqlite(sqlite);
  await migrate(database, 'sqlite', { table: 'dedup' });
  return { store: sqliteDedupStore(database, { clock, table: 'dedup' }), pass: ms => clock.advance(ms), dispose: () => sqlite.close() };
});

describeConformance('sqlite', async () => {
  const clock = manualClock();
  const { database, close } = await freshSqlite();
  return { store: sqliteDedupStore(database, { clock }), clock, dispose: async () => close() };
});
