import { checkKind, hasMethods, type Kind } from '../checks.js';
import type { SqlDatabase, SqlExecutor, SqlValue } from './database.js';
import { isolationClause } from './isolation.js';
import { lend } from './lent.js';
import { toDriverValues } from './values.js';

interface MysqlStatement {
  readonly sql: string;
  readonly values: unknown[];
  readonly rowsAsArray: false;
}

/** A connection of `mysql2/promise`, as much of it as statements need. */
export interface MysqlConnection {
  query(statement: MysqlStatement): Promise<[unknown, ...unknown[]]>;
  execute(statement: MysqlStatement): Promise<[unknown, ...unknown[]]>;
}

/** A connection that a pool lends. */
export interface MysqlPoolConnection extends MysqlConnection {
  release(): void;
  destroy(): void;
}

/** A pool of `mysql2/promise`. */
export interface MysqlPool<Connection extends MysqlPoolConnection> extends MysqlConnection {
  getConnection(): Promise<Connection>;
}

/** What a statement without rows is answered with. */
interface MysqlHeader {
  readonly affectedRows: number;
  readonly serverStatus: number;
}

const send = async (connection: MysqlConnection, sql: string, values: readonly SqlValue[] = []): Promise<unknown> => {
  const statement: MysqlStatement = { sql, values: toDriverValues(values), rowsAsArray: false };
  // Values travel beside the statement, not inside it, so no setting of the server can misread them. Transaction commands cannot be prepared.
  const [result] = await (values.length > 0 ? connection.execute(statement) : connection.query(statement));
  return result;
};

const executorOn = (connection: MysqlConnection): SqlExecutor => ({
  async query(text, values) {
    const result = await send(connection, text, values);
    if (Array.isArray(result)) return { rows: result as Readonly<Record<string, unknown>>[], changed: result.length };
    return { rows: [], changed: (result as MysqlHeader).affectedRows };
  },
});

/** The server's word for "in a transaction", in the status that comes with every answer. */
const IN_TRANSACTION = 1;

/** A deadlock rolls back the whole transaction, DDL commits it, and either way what follows is committed statement by statement. */
const insistOnTransaction = async (connection: MysqlConnection): Promise<void> => {
  const { serverStatus } = (await send(connection, 'DO 0')) as MysqlHeader;
  if ((serverStatus & IN_TRANSACTION) !== 0) return;
  const message =
    'The transaction had ended before its commit: it was rolled back by a deadlock whose error did not reach the end of the work, or committed by a statement that does so (DDL, for one). ' +
    'What came after that was committed by itself. Let the failure reject the work, and keep such statements out of it.';
  throw Object.assign(new Error(message), { sqlState: '25000' });
};

/** By which a connection is given back, or its transaction is ended. */
const ENDINGS = ['release', 'end', 'beginTransaction', 'commit', 'rollback'] as const;

/** Whether the connection is as good as new. */
const rollback = (connection: MysqlConnection): Promise<boolean> => send(connection, 'ROLLBACK').then(() => true, () => false);

/** Of `mysql2` without `/promise`: its methods take callbacks. */
const takesCallbacks = (source: unknown): boolean => hasMethods(source, ['promise']);

const SOURCE: Kind = {
  expected: "a pool or a connection of mysql2/promise was expected, as in fromMysql2(createPool({ uri })) with createPool of 'mysql2/promise'",
  fits: source => hasMethods(source, ['query', 'execute']) && !takesCallbacks(source),
  advice: source => (takesCallbacks(source) ? 'This one takes callbacks: give what its promise() returns.' : undefined),
};

/**
 * A database from a pool of `mysql2/promise`, for MySQL and MariaDB, or statements on a connection of yours, in whatever
 * transaction it is. `Tx` is the connection that the pool lends.
 *
 * @throws TypeError for what is neither
 * @example const database = fromMysql2(createPool({ uri }));
 */
export function fromMysql2<Connection extends MysqlPoolConnection>(pool: MysqlPool<Connection>): SqlDatabase<Connection>;
export function fromMysql2(connection: MysqlConnection): SqlExecutor;
export function fromMysql2(source: MysqlConnection): SqlExecutor {
  checkKind('What fromMysql2 was given', source, SOURCE);
  const transaction: SqlDatabase<MysqlPoolConnection>['transaction'] = async (work, { isolation } = {}) => {
    const level = isolationClause(isolation);
    const connection = await (source as MysqlPool<MysqlPoolConnection>).getConnection();
    const loan = lend(connection, ENDINGS);
    let isWell = true;
    try {
      if (level) await send(connection, `SET TRANSACTION${level}`);
      await send(connection, 'START TRANSACTION');
      const result = await work(executorOn(connection), loan.view);
      await insistOnTransaction(connection);
      await send(connection, 'COMMIT');
      return result;
    } catch (error) {
      isWell = await rollback(connection);
      throw error;
    } finally {
      loan.end();
      if (isWell) connection.release();
      else connection.destroy();
    }
  };
  return Object.assign(executorOn(source), { transaction });
}
