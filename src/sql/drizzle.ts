import { aFunction, checkKind, withMethods, type Kind } from '../checks.js';
import { runWithin, workOnLoan } from './borrowed.js';
import type { Isolation, SqlDatabase, SqlExecutor } from './database.js';
import { checkIsolation } from './isolation.js';
import { piecesOf } from './placeholders.js';
import { resultOf } from './results.js';
import { toDriverValues } from './values.js';

/** The `sql` of `drizzle-orm`. */
export type DrizzleTag<Query> = (strings: TemplateStringsArray, ...values: unknown[]) => Query;

/** A Drizzle database or a transaction of it, as much of it as statements need. */
export interface DrizzleSql<Query> {
  execute(query: Query): PromiseLike<unknown>;
}

/** A Drizzle database. */
export interface DrizzleDatabase<Query, Tx extends DrizzleSql<Query>> extends DrizzleSql<Query> {
  transaction(work: (tx: Tx) => Promise<unknown>, options?: { readonly isolationLevel: Isolation }): Promise<unknown>;
}

/** Drizzle puts the error of the driver inside one of its own. */
const driverError = (error: unknown): unknown => (error instanceof Error && 'query' in error && 'params' in error && error.cause ? error.cause : error);

const rethrow = (error: unknown): never => {
  throw driverError(error);
};

const executorOn = <Query>(drizzle: DrizzleSql<Query>, tag: DrizzleTag<Query>): SqlExecutor => ({
  async query(text, given) {
    const { texts, values } = piecesOf(text, given);
    const query = tag(Object.assign([...texts], { raw: texts }), ...toDriverValues(values));
    return Promise.resolve(drizzle.execute(query)).then(resultOf, rethrow);
  },
});

const SOURCE: Kind = withMethods('a database of Drizzle or a transaction of it was expected, as in fromDrizzle(drizzle({ client: pool }), sql)', 'execute');
const TAG: Kind = { ...aFunction, expected: 'the sql of drizzle-orm was expected' };

/**
 * A database from Drizzle on `pg`, `postgres` or `mysql2`, or statements in a transaction of it that you have. `Tx` is
 * Drizzle's transaction. One statement more than with the driver itself goes to the server before a commit. On `pg`, let
 * its clients not end the process when their connection breaks: `pool.on('connect', client => client.on('error', () => {}))`,
 * since Drizzle does not listen.
 *
 * @param tag - the `sql` of `drizzle-orm`
 * @throws TypeError for anything else
 * @example const database = fromDrizzle(drizzle({ client: pool }), sql);
 */
export function fromDrizzle<Query>(transaction: DrizzleSql<Query> & { rollback(): never }, tag: DrizzleTag<Query>): SqlExecutor;
export function fromDrizzle<Query, Tx extends DrizzleSql<Query>>(drizzle: DrizzleDatabase<Query, Tx>, tag: DrizzleTag<Query>): SqlDatabase<Tx>;
export function fromDrizzle<Query>(drizzle: DrizzleSql<Query>, tag: DrizzleTag<Query>): SqlExecutor {
  checkKind('What fromDrizzle was given', drizzle, SOURCE);
  checkKind('The second argument of fromDrizzle', tag, TAG);
  const transaction: SqlDatabase<DrizzleSql<Query>>['transaction'] = async (work, { isolation } = {}) => {
    checkIsolation(isolation);
    const options = isolation && { isolationLevel: isolation };
    const run = (tx: DrizzleSql<Query>): ReturnType<typeof work> => workOnLoan({ sql: executorOn(tx, tag), tx, endings: [] }, work);
    return runWithin(begun => (drizzle as DrizzleDatabase<Query, DrizzleSql<Query>>).transaction(begun, options).catch(rethrow), run);
  };
  return Object.assign(executorOn(drizzle, tag), { transaction });
}
