import { atLeast, checkKind, checkOptions, withMethods, type Kind, type Kinds } from '../checks.js';
import { systemClock, type Clock } from '../clock.js';
import { random } from '../key.js';
import type { SqlDatabase, SqlExecutor, SqlValue } from './database.js';
import { checkIsolation } from './isolation.js';
import { createTurns } from './turns.js';

interface SqliteStatement {
  all(...values: (string | number | bigint | Uint8Array | null)[]): unknown[];
}

/** A `DatabaseSync` of `node:sqlite`, as much of it as statements need. */
export interface NodeSqliteDatabase {
  prepare(text: string): SqliteStatement;
  exec(text: string): void;
}

export interface NodeSqliteOptions {
  /**
   * ms that a statement waits while another process, or a transaction of this one, has the database; then it rejects.
   * Meanwhile the event loop goes on, unless the database has a busy timeout of its own. @default 5_000
   */
  readonly busyTimeout?: number | undefined;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
}

/** A transaction takes milliseconds, a checkpoint tens of them. Who has the database longer than this hangs. */
const BUSY_TIMEOUT_MS = 5000;

/** Pause before a busy database is tried again, ms; jittered, so that processes do not meet again. */
const PAUSE_MS = 2;

/** Enough for all statements of a few stores, and little memory where texts never repeat. */
const PREPARED_LIMIT = 100;

/** Primary result codes, which an extended one has in its lowest byte. */
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

const isBusy = (error: unknown): boolean => [SQLITE_BUSY, SQLITE_LOCKED].includes(((error as { errcode?: number } | null)?.errcode ?? 0) & 0xff);

/** Keeps the statements that were used last. */
const preparing = (database: NodeSqliteDatabase): ((text: string) => SqliteStatement) => {
  const prepared = new Map<string, SqliteStatement>();
  return text => {
    const statement = prepared.get(text) ?? database.prepare(text);
    prepared.delete(text);
    prepared.set(text, statement);
    const [oldest] = prepared.keys();
    if (prepared.size > PREPARED_LIMIT) prepared.delete(oldest as string);
    return statement;
  };
};

/** SQLite has no type for truth. */
const storable = (value: SqlValue): Exclude<SqlValue, boolean> => (typeof value === 'boolean' ? Number(value) : value);

/** Runs a statement at once: for a connection that nobody else is using now. */
const executing = (database: NodeSqliteDatabase): SqlExecutor['query'] => {
  const prepare = preparing(database);
  return async (text, values = []) => {
    const rows = prepare(text).all(...values.map(storable)) as Readonly<Record<string, unknown>>[];
    if (rows.length > 0) return { rows, changed: rows.length };
    const [count] = prepare('SELECT changes() AS changed').all() as { changed: number | bigint }[];
    return { rows, changed: Number(count?.changed) };
  };
};

const waiting = (clock: Clock, busyTimeout: number): (<T>(work: () => T | Promise<T>) => Promise<T>) => {
  const time = (): number => clock.monotonic?.() ?? clock.now();
  return async work => {
    for (const since = time(); ; await clock.sleep(PAUSE_MS * (0.5 + random()))) {
      try {
        return await work();
      } catch (error) {
        if (!isBusy(error) || time() - since > busyTimeout) throw error;
      }
    }
  };
};

const tooLong = (busyTimeout: number) => (): Error => {
  const message =
    `A transaction of this process has had the SQLite database for ${busyTimeout} ms. Inside the work of a transaction use what it is given, not the database; ` +
    'and keep waiting for other things out of it.';
  return Object.assign(new Error(message), { errcode: SQLITE_BUSY });
};

const SOURCE: Kind = withMethods("a DatabaseSync of node:sqlite was expected, as in fromNodeSqlite(new DatabaseSync('shop.db'))", 'prepare', 'exec');
const KINDS: Kinds<NodeSqliteOptions> = { busyTimeout: atLeast(0, 'ms'), clock: withMethods('a clock was expected, with now() and sleep()', 'now', 'sleep') };

/**
 * A database from a `DatabaseSync` of `node:sqlite`. All who use this object share one connection, so they take turns: while a
 * transaction is open, everybody else's statements wait. `Tx` is the `DatabaseSync` itself; what is run on it directly at
 * any other time can land in the transaction of somebody else, so give samekey a connection of its own. Transactions
 * begin IMMEDIATE, which leaves nothing to fail half way, and are serializable whatever isolation is asked for.
 *
 * @throws TypeError for anything else, and for options that do not exist or cannot work
 * @example const database = fromNodeSqlite(new DatabaseSync('shop.db'));
 */
export const fromNodeSqlite = <Database extends NodeSqliteDatabase>(
  database: Database,
  options: NodeSqliteOptions = {},
): SqlDatabase<Database> => {
  checkKind('What fromNodeSqlite was given', database, SOURCE);
  checkOptions(options, KINDS, { of: 'fromNodeSqlite' });
  const { busyTimeout = BUSY_TIMEOUT_MS, clock = systemClock } = options;
  const sql: SqlExecutor = { query: executing(database) };
  const inTurn = createTurns(clock, busyTimeout, tooLong(busyTimeout));
  const patiently = waiting(clock, busyTimeout);
  const rollback = (): void => {
    try {
      database.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full. What had failed is what counts.
    }
  };
  return {
    query: (text, values) => inTurn(() => patiently(() => sql.query(text, values))),
    transaction: (work, { isolation } = {}) =>
      inTurn(async () => {
        checkIsolation(isolation);
        await patiently(() => database.exec('BEGIN IMMEDIATE'));
        try {
          const result = await work(sql, database);
          await patiently(() => database.exec('COMMIT'));
          return result;
        } catch (error) {
          rollback();
          throw error;
        }
      }),
  };
};

/** Statements on a `DatabaseSync` in a transaction that you have opened on it. They do not wait for a turn. */
export const onNodeSqlite = (database: NodeSqliteDatabase): SqlExecutor => ({ query: executing(database) });
