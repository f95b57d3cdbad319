import { checkKind, withMethods, type Kind } from '../checks.js';
import { runWithin } from './borrowed.js';
import type { SqlDatabase, SqlExecutor } from './database.js';
import { isolationClause } from './isolation.js';
import { over } from './lent.js';

interface PostgresJsRows extends ReadonlyArray<unknown> {
  readonly count: number;
}

/** What `postgres()` gives, and hands to the work of a transaction, as much of it as statements need. */
export interface PostgresJsSql {
  unsafe(text: string, values: never[], options: { readonly prepare: boolean }): PromiseLike<PostgresJsRows>;
}

/** What `postgres()` gives. */
export interface PostgresJs<Tx extends PostgresJsSql> extends PostgresJsSql {
  begin(options: string, work: (sql: Tx) => Promise<unknown>): Promise<unknown>;
}

const executorOn = (sql: PostgresJsSql): SqlExecutor => ({
  async query(text, values = []) {
    // Prepared unless the caller has turned that off for the whole client, as poolers demand.
    const rows = await sql.unsafe(text, [...values] as never[], { prepare: values.length > 0 });
    return { rows: [...(rows as readonly Readonly<Record<string, unknown>>[])], changed: rows.count };
  },
});

/** The handle, as long as `check` does not throw. */
const guarded = <Tx extends PostgresJsSql>(sql: Tx, check: () => void): Tx =>
  new Proxy(sql, {
    apply(target, self, values) {
      check();
      return Reflect.apply(target as unknown as () => unknown, self, values) as unknown;
    },
    get(target, name) {
      check();
      return Reflect.get(target, name) as unknown;
    },
  });

/**
 * A transaction that sends nothing after its end, or after its connection is lost. postgres.js would send it, the end of the transaction
 * included: into a socket that is gone, which ends the process, or on the next connection, where it is committed.
 */
const beginGuarded = <Tx extends PostgresJsSql>(sql: PostgresJs<Tx>, options: string, work: (tx: Tx) => Promise<unknown>): Promise<unknown> => {
  let ended: Error | undefined;
  let isDone = false;
  const check = (): void => {
    if (ended) throw ended;
  };
  const begun = sql.begin(options, tx => {
    const running = work(guarded(tx, check)).finally(() => (isDone = true));
    return new Promise((resolve, reject) => void running.then(value => ended ?? resolve(value), (error: Error) => ended ?? reject(error)));
  });
  const end = (how: Error): void => void (ended = how);
  return begun.then(
    result => {
      end(over());
      return result;
    },
    (error: Error) => {
      end(isDone ? over() : error);
      throw error;
    },
  );
};

const SOURCE: Kind = withMethods('what postgres(url) gives was expected, or the sql of a transaction', 'unsafe');

/**
 * A database from postgres.js, or statements in a transaction of it that you have. `Tx` is the `sql` of the
 * transaction. Give it a client without `transform`: names and values have to come as they are.
 *
 * @throws TypeError for anything else
 * @example const database = fromPostgresJs(postgres(connectionString));
 */
export function fromPostgresJs<Tx extends PostgresJsSql>(sql: PostgresJs<Tx>): SqlDatabase<Tx>;
export function fromPostgresJs(sql: PostgresJsSql): SqlExecutor;
export function fromPostgresJs(sql: PostgresJsSql): SqlExecutor {
  checkKind('What fromPostgresJs was given', sql, SOURCE);
  const transaction: SqlDatabase<PostgresJsSql>['transaction'] = async (work, { isolation } = {}) => {
    const options = isolationClause(isolation).trim();
    return runWithin((run: (tx: PostgresJsSql) => Promise<unknown>) => beginGuarded(sql as PostgresJs<PostgresJsSql>, options, run), tx => work(executorOn(tx), tx));
  };
  return Object.assign(executorOn(sql), { transaction });
}
