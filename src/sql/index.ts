export type { Isolation, SqlDatabase, SqlExecutor, SqlResult, SqlValue, TransactionOptions } from './database.js';
export { fromDrizzle, type DrizzleDatabase, type DrizzleSql, type DrizzleTag } from './drizzle.js';
export { fromKnex, type KnexDatabase, type KnexSql } from './knex.js';
export { fromKysely, type KyselyDatabase, type KyselySql } from './kysely.js';
export { fromMysql2, type MysqlConnection, type MysqlPool, type MysqlPoolConnection } from './mysql2.js';
export { fromNodeSqlite, onNodeSqlite, type NodeSqliteDatabase, type NodeSqliteOptions } from './node-sqlite.js';
export { fromPg, type FromPgOptions, type PgClient, type PgPool, type PgPoolClient } from './pg.js';
export { fromPostgresJs, type PostgresJs, type PostgresJsSql } from './postgres-js.js';
export { asBytes, asNumber } from './values.js';
