import { aFlag, checkKind, checkOptions, withMethods, type Kind, type Kinds } from '../checks.js';
import { newKey } from '../key.js';
import type { SqlDatabase, SqlExecutor } from './database.js';
import { isolationClause } from './isolation.js';
import { lend } from './lent.js';

interface PgResult {
  readonly rows: Readonly<Record<string, unknown>>[];
  readonly rowCount: number | null;
  readonly command: string;
}

/** A client of `pg`, as much of it as statements need. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<PgResult>;
  query(statement: PgPrepared): Promise<PgResult>;
}

interface PgPrepared {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface FromPgOptions {
  /**
   * Gives statements names, so that PostgreSQL parses and plans each only once per connection. Not through a pooler that
   * hands connections over between transactions and does not know prepared statements, as PgBouncer before 1.21. @default false
   */
  readonly prepare?: boolean | undefined;
}

/** A client that a pool lends. */
export interface PgPoolClient extends PgClient {
  release(error?: Error | boolean): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** A pool of `pg`, or of a package that copies it. */
export interface PgPool extends PgClient {
  connect(): Promise<PgPoolClient>;
}

/** What a pool lends, from the first of the overloads of `connect`. */
type ClientOf<Pool extends PgPool> = Pool extends { connect: { (): Promise<infer Client>; (callback: never): void } }
  ? Client
  : Awaited<ReturnType<Pool['connect']>>;

/** A name for a statement; undefined for one that goes without. */
type NameOf = (text: string) => string | undefined;

/** A connection keeps what it has prepared, and a list of values makes a text of each length. */
const MAX_PREPARED = 100;

/** Names that no other database object of this process, or another copy of this package, gives to another text. */
const statementNames = (): NameOf => {
  const prefix = `samekey_${newKey()}`;
  const names = new Map<string, string>();
  return text => {
    const known = names.get(text);
    if (known !== undefined || names.size >= MAX_PREPARED) return known;
    const name = `${prefix}_${names.size}`;
    names.set(text, name);
    return name;
  };
};

const unnamed: NameOf = () => undefined;

const executorOn = (client: PgClient, nameOf: NameOf): SqlExecutor => ({
  async query(text, values = []) {
    const name = values.length > 0 ? nameOf(text) : undefined;
    const { rows, rowCount } = await (name === undefined ? client.query(text, [...values]) : client.query({ name, text, values: [...values] }));
    return { rows, changed: rowCount ?? 0 };
  },
});

/** PostgreSQL answers COMMIT with success when a failed statement has made it roll back instead; only the tag tells. */
const commit = async (client: PgClient): Promise<void> => {
  const { command } = await client.query('COMMIT');
  if (command !== 'ROLLBACK') return;
  const message = 'The transaction was rolled back instead of committed, because a statement in it had failed. Let that failure reject the work, or put a savepoint before the statement.';
  throw Object.assign(new Error(message), { code: '25P02' });
};

/** Says how the connection was lost, if it was. A client on loan without a listener would end the process with that. */
const watch = (client: PgPoolClient): { readonly lost: () => Error | undefined; readonly end: () => void } => {
  let lost: Error | undefined;
  const listener = (error: Error): void => void (lost ??= error);
  client.on('error', listener);
  return { lost: () => lost, end: () => client.removeListener('error', listener) };
};

/** Undefined when it worked, and the connection is as good as new. */
const rollback = (client: PgClient): Promise<Error | undefined> => client.query('ROLLBACK').then(() => undefined, (error: Error) => error);

const SOURCE: Kind = withMethods('a pool or a client of pg was expected, as in fromPg(new Pool({ connectionString }))', 'query');
const KINDS: Kinds<FromPgOptions> = { prepare: aFlag };

/**
 * A database from a pool of `pg`, or statements on a client of yours, in whatever transaction it is. `Tx` is the client
 * that the pool lends. Listen to the pool's `error` event, as every user of `pg` has to: an idle connection that breaks
 * ends the process otherwise.
 *
 * @throws TypeError for what is neither, and for options that do not exist
 * @example const database = fromPg(new Pool({ connectionString }));
 */
export function fromPg<Pool extends PgPool>(pool: Pool, options?: FromPgOptions): SqlDatabase<ClientOf<Pool>>;
export function fromPg(client: PgClient, options?: FromPgOptions): SqlExecutor;
export function fromPg(source: PgClient & Partial<PgPool>, options: FromPgOptions = {}): SqlExecutor {
  checkKind('What fromPg was given', source, SOURCE);
  checkOptions(options, KINDS, { of: 'fromPg' });
  const { prepare = false } = options;
  const nameOf = prepare ? statementNames() : unnamed;
  const transaction: SqlDatabase<PgPoolClient>['transaction'] = async (work, { isolation } = {}) => {
    const begin = `BEGIN${isolationClause(isolation)}`;
    const client = await (source as PgPool).connect();
    const connection = watch(client);
    const loan = lend(client, ['release']);
    let broken: Error | undefined;
    try {
      await client.query(begin);
      const result = await work(executorOn(client, nameOf), loan.view);
      // What broke it says more than that it is broken.
      if (connection.lost()) throw connection.lost() as Error;
      await commit(client);
      return result;
    } catch (error) {
      broken = await rollback(client);
      throw error;
    } finally {
      connection.end();
      loan.end();
      client.release(connection.lost() ?? broken);
    }
  };
  return Object.assign(executorOn(source, nameOf), { transaction });
}
