import { sql, type ExtractTablesWithRelations } from 'drizzle-orm';
import type { MySql2Database } from 'drizzle-orm/mysql2';
import type { NodePgDatabase, NodePgQueryResultHKT } from 'drizzle-orm/node-postgres';
import type { PgTransaction } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { expectTypeOf } from 'expect-type';
import { fromDrizzle, type SqlDatabase, type SqlExecutor } from '../../../src/sql/index.js';

type Tables = Record<string, never>;
type Drizzled = PgTransaction<NodePgQueryResultHKT, Tables, ExtractTablesWithRelations<Tables>>;

declare const drizzle: NodePgDatabase<Tables>;
declare const drizzleOnPostgresJs: PostgresJsDatabase<Tables>;
declare const drizzleOnMysql: MySql2Database<Tables>;
declare const drizzleTransaction: Drizzled;

expectTypeOf(fromDrizzle(drizzle, sql)).toEqualTypeOf<SqlDatabase<Drizzled>>();
expectTypeOf(fromDrizzle(drizzleTransaction, sql)).toEqualTypeOf<SqlExecutor>();
expectTypeOf(fromDrizzle(drizzleOnPostgresJs, sql)).toExtend<SqlDatabase>();
expectTypeOf(fromDrizzle(drizzleOnMysql, sql)).toExtend<SqlDatabase>();
