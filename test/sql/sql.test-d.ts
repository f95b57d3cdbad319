import type { DatabaseSync } from 'node:sqlite';
import { expectTypeOf } from 'expect-type';
import type { Knex } from 'knex';
import type { ControlledTransaction, Kysely, Transaction } from 'kysely';
import type { Connection as MysqlConnection, Pool as MysqlPool, PoolConnection as MysqlPoolConnection } from 'mysql2/promise';
import type { Client, Pool, PoolClient } from 'pg';
import type { Sql, TransactionSql } from 'postgres';
import { fromKnex, fromKysely, fromMysql2, fromNodeSqlite, fromPg, fromPostgresJs, onNodeSqlite, type SqlDatabase, type SqlExecutor } from '../../src/sql/index.js';

/** The handle of the driver is inferred, and a handle makes an executor that cannot begin a transaction. */

declare const pool: Pool;
declare const client: Client;
declare const poolClient: PoolClient;

expectTypeOf(fromPg(pool)).toEqualTypeOf<SqlDatabase<PoolClient>>();
expectTypeOf(fromPg(client)).toEqualTypeOf<SqlExecutor>();
expectTypeOf(fromPg(poolClient)).toEqualTypeOf<SqlExecutor>();

declare const postgresJs: Sql<{ point: number[] }>;
declare const postgresJsTransaction: TransactionSql<{ point: number[] }>;

expectTypeOf(fromPostgresJs(postgresJs)).toEqualTypeOf<SqlDatabase<TransactionSql<{ point: number[] }>>>();
expectTypeOf(fromPostgresJs(postgresJsTransaction)).toEqualTypeOf<SqlExecutor>();

declare const mysqlPool: MysqlPool;
declare const mysqlConnection: MysqlConnection;
declare const mysqlPoolConnection: MysqlPoolConnection;

expectTypeOf(fromMysql2(mysqlPool)).toEqualTypeOf<SqlDatabase<MysqlPoolConnection>>();
expectTypeOf(fromMysql2(mysqlConnection)).toEqualTypeOf<SqlExecutor>();
expectTypeOf(fromMysql2(mysqlPoolConnection)).toEqualTypeOf<SqlExecutor>();

declare const sqlite: DatabaseSync;

expectTypeOf(fromNodeSqlite(sqlite)).toEqualTypeOf<SqlDatabase<DatabaseSync>>();
expectTypeOf(onNodeSqlite(sqlite)).toEqualTypeOf<SqlExecutor>();

interface Schema {
  readonly item: { readonly id: string };
}

declare const kysely: Kysely<Schema>;
declare const kyselyTransaction: Transaction<Schema>;
declare const controlled: ControlledTransaction<Schema>;

expectTypeOf(fromKysely(kysely)).toEqualTypeOf<SqlDatabase<Transaction<Schema>>>();
expectTypeOf(fromKysely(kyselyTransaction)).toEqualTypeOf<SqlExecutor>();
expectTypeOf(fromKysely(controlled)).toEqualTypeOf<SqlExecutor>();

declare const knex: Knex;
declare const knexTransaction: Knex.Transaction;

expectTypeOf(fromKnex(knex)).toEqualTypeOf<SqlDatabase<Knex.Transaction>>();
expectTypeOf(fromKnex(knexTransaction)).toEqualTypeOf<SqlExecutor>();
