import { checkKind, withMethods, type Kind } from '../checks.js';
import { runWithin } from './borrowed.js';
import type { Isolation, SqlDatabase, SqlExecutor } from './database.js';
import { checkIsolation } from './isolation.js';
import { lend } from './lent.js';
import { toDriverValues } from './values.js';

interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: { readonly kind: 'RawNode'; readonly sqlFragments: readonly string[]; readonly parameters: readonly never[] };
  readonly queryId: { readonly queryId: string };
}

interface KyselyResult {
  readonly rows: readonly unknown[];
  readonly numAffectedRows?: bigint | undefined;
}

/** A `Kysely` or a `Transaction` of it, as much of it as statements need. */
export interface KyselySql {
  withoutPlugins(): { executeQuery(query: KyselyQuery): Promise<KyselyResult> };
}

interface KyselyTransactionBuilder<Tx> {
  setIsolationLevel(level: Isolation): KyselyTransactionBuilder<Tx>;
  execute(work: (tx: Tx) => Promise<unknown>): Promise<unknown>;
}

/** A `Kysely`. */
export interface KyselyDatabase<Tx extends KyselySql> extends KyselySql {
  transaction(): KyselyTransactionBuilder<Tx>;
}

const executorOn = (kysely: KyselySql): SqlExecutor => {
  // Plugins rename columns and convert values; samekey reads them as they are.
  const plain = kysely.withoutPlugins();
  return {
    async query(text, values = []) {
      const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] } as const;
      const { rows, numAffectedRows } = await plain.executeQuery({ sql: text, parameters: toDriverValues(values), query, queryId: { queryId: 'samekey' } });
      return { rows: rows as readonly Readonly<Record<string, unknown>>[], changed: Number(numAffectedRows ?? rows.length) };
    },
  };
};

const SOURCE: Kind = withMethods('a Kysely or a transaction of it was expected', 'withoutPlugins');

/**
 * A database from Kysely on PostgreSQL or MySQL, or statements in a `Transaction` of it that you have. `Tx` is Kysely's
 * `Transaction`. On `pg`, let its clients not end the process when their connection breaks:
 * `pool.on('connect', client => client.on('error', () => {}))`, since Kysely does not listen.
 *
 * @throws TypeError for anything else
 * @example const database = fromKysely(new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }));
 */
export function fromKysely(transaction: KyselySql & { readonly isTransaction: true }): SqlExecutor;
export function fromKysely<Tx extends KyselySql>(kysely: KyselyDatabase<Tx>): SqlDatabase<Tx>;
export function fromKysely(kysely: KyselySql): SqlExecutor {
  checkKind('What fromKysely was given', kysely, SOURCE);
  const transaction: SqlDatabase<KyselySql>['transaction'] = async (work, { isolation } = {}) => {
    checkIsolation(isolation);
    const builder = (kysely as KyselyDatabase<KyselySql>).transaction();
    const lending = async (tx: KyselySql): ReturnType<typeof work> => {
      const loan = lend(tx, []);
      try {
        return await work(executorOn(tx), loan.view);
      } finally {
        loan.end();
      }
    };
    return runWithin(run => (isolation ? builder.setIsolationLevel(isolation) : builder).execute(run), lending);
  };
  return Object.assign(executorOn(kysely), { transaction });
}
