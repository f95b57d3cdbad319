import { expectTypeOf } from 'expect-type';
import type { Client, Pool, PoolClient } from 'pg';
import { fromPg, type SqlDatabase, type SqlExecutor } from '../../src/sql/index.js';

declare const pool: Pool;
declare const client: Client;
declare const poolClient: PoolClient;

expectTypeOf(fromPg(pool)).toEqualTypeOf<SqlDatabase<PoolClient>>();
expectTypeOf(fromPg(client)).toEqualTypeOf<SqlExecutor>();
expectTypeOf(fromPg(poolClient)).toEqualTypeOf<SqlExecutor>();
