import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'vitest';
import { sqliteDedupStore } from '../../src/server/stores/sqlite.js';
import { migrate } from '../../src/server/migrate.js';
import { fromNodeSqlite } from '../../src/sql/index.js';
import { describeDedupStore, type DedupStoreSubject } from '../../src/testing/index.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';
import { describeConformance } from '../../src/testing/conformance.js';
import { describeStoreModel } from './model/suite.js';
import { freshSqlite } from './support/sqlite.js';
import { dedupTarget, type StoreStage } from './support/targets.js';

bePatient();

/** More than any case takes on a busy machine. */
const DRIFT_MS = 10_000;

describeDedupStore({ describe, it }, 'sqlite, on a file and the time of the machine', async () => {
  const { database, pass, close } = await freshSqlite();
  return { store: sqliteDedupStore(database), pass, drift: DRIFT_MS, dispose: close };
});

const inMemory = async (): Promise<DedupStoreSubject> => {
  const clock = manualClock();
  const sqlite = new DatabaseSync(':memory:');
  const database = fromNodeSqlite(sqlite);
  await migrate(database, 'sqlite', { table: 'dedup' });
  return { store: sqliteDedupStore(database, { clock, table: 'dedup' }), pass: ms => clock.advance(ms), dispose: () => sqlite.close() };
};

describeDedupStore({ describe, it }, 'sqlite, in memory and on a clock of its own', inMemory);
describeStoreModel('sqlite', inMemory, { stories: 50 });

const onFile = async (): Promise<StoreStage> => {
  const clock = manualClock();
  const { database, close } = await freshSqlite();
  return { store: sqliteDedupStore(database, { clock }), clock, dispose: async () => close() };
};

// More than one purge takes, but not many more: each record is two commits, which are synced to the disk.
describeConformance({ describe, it }, dedupTarget('sqlite', onFile, { bulk: 1_200 }));
