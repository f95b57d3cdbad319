import { afterAll, beforeAll, describe, it } from 'vitest';
import { postgresDedupStore } from '../../src/server/stores/postgres.js';
import { describeConformance, type ConformanceTarget } from '../../src/testing/conformance.js';
import { describeDedupStore } from '../../src/testing/index.js';
import { bePatient } from '../support/patience.js';
import { describeStoreModel } from './model/suite.js';
import { agingClock } from './support/aging-clock.js';
import { freshPostgres, postgresLedger, postgresWorker, type PostgresDatabase } from './support/postgres.js';
import { dedupTarget, SETTLES_IN_TRANSACTION, WITHOUT_LEASE, type DedupTargetOptions, type StoreStage } from './support/targets.js';

bePatient();

/** More than any case takes on a busy machine. */
const DRIFT_MS = 5_000;

let db: PostgresDatabase;
beforeAll(async () => {
  db = await freshPostgres();
});
afterAll(() => db.drop());

for (const mode of ['tx', 'lease'] as const) {
  describeDedupStore({ describe, it }, `postgres, ${mode}`, () => ({
    store: postgresDedupStore(db.database, { mode }), pass: db.pass, drift: DRIFT_MS, dispose: db.clear,
  }));
}

describeStoreModel('postgres', () => ({ store: postgresDedupStore(db.database, { mode: 'lease' }), pass: db.pass, drift: DRIFT_MS, dispose: db.clear }), { stories: 20 });

const stageOf = (mode: 'tx' | 'single-tx' | 'lease'): StoreStage => ({
  store: postgresDedupStore(db.database, { mode }), clock: agingClock(db.pass), drift: DRIFT_MS, dispose: db.clear,
});

describeConformance({ describe, it }, dedupTarget('postgres, lease', () => stageOf('lease')));

describeConformance({ describe, it }, dedupTarget(
  'postgres, lease, with effects in the transaction of the answer',
  () => ({ ...stageOf('lease'), worker: () => postgresWorker(db, { mode: 'lease' }), ledger: postgresLedger(db.pool) }),
  { abilities: ['transactions'], without: SETTLES_IN_TRANSACTION },
));

const transactional = (mode: 'tx' | 'single-tx', options: Omit<DedupTargetOptions, 'abilities'>): ConformanceTarget =>
  dedupTarget(
    `postgres, ${mode}`,
    () => ({ ...stageOf(mode), worker: () => postgresWorker(db, { mode, lockTimeout: 100 }), ledger: postgresLedger(db.pool) }),
    { ...options, abilities: ['transactions', 'tx'] },
  );

describeConformance({ describe, it }, transactional('tx', { without: WITHOUT_LEASE }));

const UNSEEN = 'the row of a run in progress is not committed, so nobody can compare with it';

describeConformance({ describe, it }, transactional('single-tx', {
  without: [...WITHOUT_LEASE, 'announce'],
  skip: [{ case: '25a', reason: UNSEEN }, { case: '57b', reason: UNSEEN }],
}));
