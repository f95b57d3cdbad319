import { describe, it } from 'vitest';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { describeConformance } from '../../src/testing/conformance.js';
import { describeDedupStore } from '../../src/testing/index.js';
import { openForAll } from '../support/open-for-all.js';
import { bePatient } from '../support/patience.js';
import { describeStoreModel } from './model/suite.js';
import { agingClock } from './support/aging-clock.js';
import { freshMysql, mysqlLedger, mysqlWorker, type MysqlDatabase } from './support/mysql.js';
import { dedupTarget, SETTLES_IN_TRANSACTION, WITHOUT_LEASE, type StoreStage } from './support/targets.js';

bePatient();

/** More than any case takes on a busy machine. */
const DRIFT_MS = 5_000;

let db: MysqlDatabase;
openForAll(async () => {
  db = await freshMysql();
  return db.drop;
});

for (const mode of ['tx', 'lease'] as const) {
  describeDedupStore({ describe, it }, `mysql, ${mode}`, () => ({
    store: mysqlDedupStore(db.database, { mode }), pass: db.pass, drift: DRIFT_MS, dispose: db.clear,
  }));
}

describeStoreModel('mysql', () => ({ store: mysqlDedupStore(db.database, { mode: 'lease' }), pass: db.pass, drift: DRIFT_MS, dispose: db.clear }), { stories: 20 });

const stageOf = (mode: 'tx' | 'lease'): StoreStage => ({
  store: mysqlDedupStore(db.database, { mode }), clock: agingClock(db.pass), drift: DRIFT_MS, dispose: db.clear,
});

describeConformance({ describe, it }, dedupTarget(
  'mysql, tx',
  () => ({ ...stageOf('tx'), worker: () => mysqlWorker(db, { mode: 'tx' }), ledger: mysqlLedger(db.pool) }),
  { abilities: ['transactions', 'tx'], without: WITHOUT_LEASE },
));

describeConformance({ describe, it }, dedupTarget('mysql, lease', () => stageOf('lease')));

describeConformance({ describe, it }, dedupTarget(
  'mysql, lease, with effects in the transaction of the answer',
  () => ({ ...stageOf('lease'), worker: () => mysqlWorker(db, { mode: 'lease' }), ledger: mysqlLedger(db.pool) }),
  { abilities: ['transactions'], without: SETTLES_IN_TRANSACTION },
));
