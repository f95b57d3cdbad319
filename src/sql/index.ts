export type { Isolation, SqlDatabase, SqlExecutor, SqlResult, SqlValue, TransactionOptions } from './database.js';
export { fromPg, type PgClient, type PgPool, type PgPoolClient } from './pg.js';
export { asBytes, asNumber } from './values.js';
