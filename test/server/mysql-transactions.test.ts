import type { PoolConnection } from 'mysql2/promise';
import { beforeEach } from 'vitest';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { openForAll } from '../support/open-for-all.js';
import { cutMysql, freshMysql, type MysqlDatabase } from './support/mysql.js';
import { describeAnnouncements, type HoldingDatabase } from './transactions/announcements.js';
import { describeDuplicates, describeStaleHandlers } from './transactions/duplicates.js';
import { describeHandlerTransactions } from './transactions/handlers.js';

let db: MysqlDatabase;
openForAll(async () => {
  db = await freshMysql();
  return db.drop;
});
beforeEach(() => db.clear());

const databaseOf = (mode: 'tx' | 'lease'): HoldingDatabase<PoolConnection> => ({
  store: mysqlDedupStore(db.database, { mode }),
  insert: (tx, label, attempt) => tx.query('INSERT INTO charges (label, attempt) VALUES (?, ?)', [label, attempt]),
  charges: () => db.count('charges'),
  pass: db.pass,
  notes: () => db.count('idempotency_keys_effects'),
  cut: tx => cutMysql(db.pool, tx),
});

for (const mode of ['tx', 'lease'] as const) {
  describeHandlerTransactions(`mysql, ${mode}`, () => databaseOf(mode));
  describeDuplicates(`mysql, ${mode}`, () => databaseOf(mode));
}

describeAnnouncements('mysql', () => databaseOf('tx'));
describeStaleHandlers('mysql', () => databaseOf('lease'));
