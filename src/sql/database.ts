/** What a statement may be given. Bytes travel as bytes, never as text. */
export type SqlValue = string | number | bigint | boolean | Uint8Array | null;

export interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows that an INSERT, UPDATE or DELETE touched. */
  readonly changed: number;
}

/** Runs one statement at a time. Placeholders are the database's own: `$1` for PostgreSQL, `?` for MySQL and SQLite. */
export interface SqlExecutor {
  /** Rejects with the driver's error, unchanged: its code says what happened. */
  query(text: string, values?: readonly SqlValue[]): Promise<SqlResult>;
}

export type Isolation = 'read committed' | 'repeatable read' | 'serializable';

export interface TransactionOptions {
  /** @default the database's own */
  readonly isolation?: Isolation | undefined;
}

/**
 * A database as samekey sees it; `samekey/sql` makes one from the driver that the caller has. `Tx` is the driver's own
 * handle of a transaction, which the caller's statements go through.
 */
export interface SqlDatabase<Tx = unknown> extends SqlExecutor {
  /**
   * Runs `work` in one transaction on one connection of its own: commits when it resolves, rolls back when it rejects,
   * and gives the connection back in both cases. It rejects with what `work` rejected with. When the commit itself
   * fails, it rejects with the driver's error, and nobody knows whether the transaction was committed.
   */
  transaction<T>(work: (sql: SqlExecutor, tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
}
