import { afterAll, beforeAll, describe, it } from 'vitest';
import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { describeConformance } from '../../../src/testing/conformance.js';
import { bePatient } from '../../support/patience.js';
import { agingClock } from '../support/aging-clock.js';
import { freshPostgres, postgresLedger, postgresWorker, type PostgresDatabase } from '../support/postgres.js';
import { overExpress } from '../support/serve-express.js';
import { overFastify } from '../support/serve-fastify.js';
import { dedupTarget, WITHOUT_LEASE, type Serve, type StoreStage } from '../support/targets.js';

bePatient();

/** More than any case takes on a busy machine. */
const DRIFT_MS = 5_000;

let db: PostgresDatabase;
beforeAll(async () => {
  db = await freshPostgres();
});
afterAll(() => db.drop());

const create = (): StoreStage => ({
  store: postgresDedupStore(db.database, { mode: 'tx' }),
  clock: agingClock(db.pass),
  drift: DRIFT_MS,
  worker: () => postgresWorker(db, { mode: 'tx', lockTimeout: 100 }),
  ledger: postgresLedger(db.pool),
  dispose: db.clear,
});

const ways: Record<string, Serve> = { Express: overExpress, Fastify: overFastify };

/** The handler of the cases asks for its transaction whatever the method is. */
const UNTOUCHED = 'GET, HEAD and OPTIONS go past the adapter untouched, so it has no transaction for them';

for (const [name, serve] of Object.entries(ways)) {
  describeConformance({ describe, it }, dedupTarget(`postgres, tx, over ${name}`, create, {
    serve, without: WITHOUT_LEASE, abilities: ['transactions', 'tx'], skip: [{ case: '11a', reason: UNTOUCHED }],
  }));
}
