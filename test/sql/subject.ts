import type { SqlDatabase, SqlExecutor } from '../../src/sql/index.js';

export type Dialect = 'postgres' | 'mysql' | 'sqlite';

/** A database through one driver, with what the facts need to see and to break. */
export interface SqlSubject<Tx = unknown> {
  readonly database: SqlDatabase<Tx>;
  readonly dialect: Dialect;
  /** Runs a statement without values through the driver's own handle. */
  through(tx: Tx, text: string): Promise<unknown>;
  /** Connections that are lent by the pool, or sessions in a transaction, at this moment. */
  lent(): number | Promise<number>;
  /** Ends the connection that `sql` works on, from outside, and returns when it is gone. Absent where there is no connection. */
  readonly cut?: ((sql: SqlExecutor) => Promise<void>) | undefined;
}

/** Where the handle does not matter. */
export type AnySubject = Omit<SqlSubject, 'database' | 'through'> & { readonly database: SqlDatabase };

/** The most connections that a pool under test opens. */
export const POOL_SIZE = 4;

/** `$1, $2` or `?, ?`. */
export const marks = (dialect: Dialect, count: number): string[] => Array.from({ length: count }, (_, at) => (dialect === 'postgres' ? `$${at + 1}` : '?'));

/** One table for all facts; each begins with it empty. */
export const TABLE: Record<Dialect, readonly string[]> = {
  postgres: [
    'CREATE TABLE item (id text PRIMARY KEY, amount bigint, note text, data bytea, parent text REFERENCES item DEFERRABLE INITIALLY DEFERRED)',
  ],
  mysql: ['CREATE TABLE item (id varchar(64) PRIMARY KEY, amount bigint, note text, data longblob, parent varchar(64)) ENGINE = InnoDB'],
  sqlite: [
    'PRAGMA foreign_keys = ON',
    'CREATE TABLE item (id text PRIMARY KEY, amount integer, note text, data blob, parent text REFERENCES item DEFERRABLE INITIALLY DEFERRED) STRICT',
  ],
};
