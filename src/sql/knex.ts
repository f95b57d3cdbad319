import { checkKind, withMethods, type Kind } from '../checks.js';
import { runWithin, workOnLoan } from './borrowed.js';
import type { Isolation, SqlDatabase, SqlExecutor } from './database.js';
import { checkIsolation } from './isolation.js';
import { piecesOf } from './placeholders.js';
import { resultOf } from './results.js';
import { toDriverValues } from './values.js';

/** A `Knex` or a `Transaction` of it, as much of it as statements need. */
export interface KnexSql {
  raw(text: string, bindings: never[]): PromiseLike<unknown>;
  readonly client: { readonly config: { readonly postProcessResponse?: unknown } };
}

/** A `Knex`. */
export interface KnexDatabase<Tx extends KnexSql> extends KnexSql {
  transaction(work: (tx: Tx) => Promise<unknown>, options: { readonly isolationLevel?: Isolation }): Promise<unknown>;
}

const executorOn = (knex: KnexSql): SqlExecutor => ({
  async query(text, given) {
    const { texts, values } = piecesOf(text, given);
    const escaped = texts.map(piece => piece.replaceAll('?', String.raw`\?`)).join('?');
    return resultOf(await knex.raw(escaped, toDriverValues(values) as never[]));
  },
});

const SOURCE: Kind = withMethods('a Knex or a transaction of it was expected, as in fromKnex(knex({ client, connection }))', 'raw');

const refuseConversion = ({ client }: KnexSql): void => {
  if (!client.config.postProcessResponse) return;
  throw new TypeError('This knex has a postProcessResponse, which may rename or convert what samekey has to read as it is. Give fromKnex a knex without one.');
};

/**
 * A database from Knex on `pg` or `mysql2`, or statements in a `Knex.Transaction` that you have. `Tx` is Knex's
 * `Transaction`. One statement more than with the driver itself goes to the server before a commit.
 *
 * @throws TypeError for anything else, and for a Knex that converts what it reads
 * @example const database = fromKnex(knex({ client: 'pg', connection }));
 */
export function fromKnex(transaction: KnexSql & { isCompleted(): boolean }): SqlExecutor;
export function fromKnex<Tx extends KnexSql>(knex: KnexDatabase<Tx>): SqlDatabase<Tx>;
export function fromKnex(knex: KnexSql): SqlExecutor {
  checkKind('What fromKnex was given', knex, SOURCE);
  refuseConversion(knex);
  const transaction: SqlDatabase<KnexSql>['transaction'] = async (work, { isolation } = {}) => {
    checkIsolation(isolation);
    const run = (tx: KnexSql): ReturnType<typeof work> => workOnLoan({ sql: executorOn(tx), tx, endings: ['commit', 'rollback'] }, work);
    return runWithin(begun => (knex as KnexDatabase<KnexSql>).transaction(begun, isolation ? { isolationLevel: isolation } : {}), run);
  };
  return Object.assign(executorOn(knex), { transaction });
}
