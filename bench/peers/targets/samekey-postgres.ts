import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { agingClock } from '../../../test/server/support/aging-clock.js';
import { freshPostgres, postgresLedger, postgresWorker, type PostgresDatabase } from '../../../test/server/support/postgres.js';
import { overExpress } from '../../../test/server/support/serve-express.js';
import { dedupTarget, WITHOUT_LEASE, type StoreStage } from '../../../test/server/support/targets.js';
import { POSTGRES_URL } from '../../../test/support/sql-servers.js';
import type { PeerTarget } from '../peer.js';

/** ms that a case takes on a busy machine, which is the database's own time. */
const DRIFT_MS = 5_000;

/** The handler of the cases asks for its transaction whatever the method is. */
const UNTOUCHED = 'GET, HEAD and OPTIONS go past the adapter untouched, so it has no transaction for them';

const NO_LEASE = 'a run holds its key by its transaction: there is no lease to lose';
const ONE_COMMIT = 'its end is a part of its transaction, and cannot fail without it';

const targetOf = (db: PostgresDatabase): PeerTarget => {
  const create = (): StoreStage => ({
    store: postgresDedupStore(db.database),
    clock: agingClock(db.pass),
    drift: DRIFT_MS,
    worker: () => postgresWorker(db, { mode: 'tx', lockTimeout: 100 }),
    ledger: postgresLedger(db.pool),
    dispose: db.clear,
  });
  return {
    configured: 'idempotent() on Express, postgresDedupStore in tx mode: effects are rows in the transaction of the answer, a process dies with its connections; retention 24 h, time passes by making the rows older',
    target: dedupTarget('samekey on PostgreSQL', create, {
      serve: overExpress,
      without: WITHOUT_LEASE,
      abilities: ['transactions', 'tx'],
      cannot: { 'cut off': NO_LEASE, 'store claim-lost': NO_LEASE, 'store settle-refused': ONE_COMMIT, 'store settle-lost': ONE_COMMIT, 'store settle-down': ONE_COMMIT },
      skip: [{ case: '11a', reason: UNTOUCHED }],
    }),
  };
};

/** Either the target, or why there is none. */
export interface OnPostgres {
  readonly peer?: PeerTarget;
  readonly absent?: string;
  close?(): Promise<void>;
}

/** On the server that SAMEKEY_POSTGRES names, else on the one of this machine, in a database that is dropped at the end. */
export const samekeyOnPostgres = async (): Promise<OnPostgres> => {
  const url = process.env['SAMEKEY_POSTGRES'] ?? POSTGRES_URL;
  if (!URL.canParse(url)) return { absent: `SAMEKEY_POSTGRES is '${url}'; name a running server by its URL` };
  try {
    const db = await freshPostgres();
    return { peer: targetOf(db), close: db.drop };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { absent: `no PostgreSQL answers at ${new URL(url).host} (${message || code}); start one, or name another with SAMEKEY_POSTGRES` };
  }
};
