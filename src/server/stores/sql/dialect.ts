import type { Placeholders, Statement } from '../../../sql/statement.js';
import type { RecordRef } from '../../record.js';

/** A column and what it is set to. */
export type Assignments = Readonly<Record<string, Statement>>;

/** Statements that wait for a lock a bounded time, ms. */
export interface Patience {
  readonly set: (ms: number) => Statement;
  readonly reset: Statement;
  /** Inserts a row, and leaves the bound as it was. The first row tells how many were `inserted`, the time `now`, and the `transaction`. */
  readonly insert: (table: Statement, row: Assignments, ms: number) => Statement;
  /** Codes of errors by which a statement says that its time is over. */
  readonly exceeded: ReadonlySet<unknown>;
}

/** Where databases differ in what the store says to them. Times are ms since 1970 outside of statements. */
export interface Dialect {
  /** As `migrate` calls it. */
  readonly name: 'postgres' | 'mysql' | 'sqlite';
  readonly placeholders: Placeholders;
  readonly quote: '"' | '`';
  /** The clock of the store in ms, also inside a long transaction the time of the statement. Read anew for each statement. */
  readonly now: Statement;
  /** What a time column is set to. */
  time(ms: number): Statement;
  /** A time column's value that many ms after now. */
  later(ms: number): Statement;
  /** The condition that a time column's moment is over, in the form that an index serves. */
  past(column: string): Statement;
  /** A time column in ms. */
  millis(column: Statement): Statement;
  /** Inserts a row unless its key exists; the number of changed rows tells, or one of the `duplicate` codes does. */
  insert(table: Statement, row: Assignments): Statement;
  /** Codes of errors by which an insert says that the key exists. */
  readonly duplicate: ReadonlySet<unknown>;
  /** Inserts a row of (scope, id_key, fence, started_at), or raises its fence: a note that comes late must not hide a newer one. */
  note(table: Statement, row: Assignments): Statement;
  /** Changes these rows, and comes past no others on the way to them: they may be locked. */
  updateRows(table: Statement, changes: Statement, refs: readonly RecordRef[]): Statement;
  deleteRows(table: Statement, refs: readonly RecordRef[]): Statement;
  /** After a SELECT: locks its rows, and skips those that are locked. Empty where a transaction locks everything anyway. */
  readonly skipLocked: Statement;
  /**
   * Before an INSERT: lets it fail, with one of the `duplicate` codes, where it would wait for the lock of a row. Undefined:
   * it never waits for the run that has the key.
   */
  readonly noWait: Statement | undefined;
  /** Whether a statement that locks a row may read another table as it was before it had the lock. */
  readonly looksBack: boolean;
  /** Whether a plain read in a serializable transaction locks what it reads, and the gap where it would be. */
  readonly readsLock: boolean;
  /**
   * Where a failed statement may end the whole transaction without a word, so that later ones are committed one by one:
   * a mark that is set before a handler's statements, a check that fails when it is gone, and the codes that it fails with.
   */
  readonly whole: { readonly mark: Statement; readonly check: Statement; readonly lost: ReadonlySet<unknown> } | undefined;
  /**
   * Where a transaction that is rolled back by a failed statement says so, but one that the handler itself ends does not: the
   * id of the transaction that a statement runs in, as text.
   */
  readonly transaction: Statement | undefined;
  /** How a transaction waits for a lock no longer than it wants. Undefined: it cannot say so. */
  readonly patience: Patience | undefined;
}
