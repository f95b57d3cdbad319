import { StoreUnavailableError } from '../../../errors.js';
import { hasCode } from '../../contention.js';
import type { Dialect } from './dialect.js';

/** How PostgreSQL and MySQL say that a table or a column does not exist. */
const MISSING: ReadonlySet<unknown> = new Set(['42P01', '42703', 'ER_NO_SUCH_TABLE', 'ER_BAD_FIELD_ERROR', '42S02', '42S22']);

/** SQLite has one code for it and for much else. */
const SQLITE_MISSING = /\bno (?:such (?:table|column)|column named)\b|\bhas no column\b/;

const isMissing = (error: unknown): boolean => hasCode(error, MISSING) || (error instanceof Error && SQLITE_MISSING.test(error.message));

/** What the store's own statement failed with; where its table is missing, with what to do about it. */
export const explained = (error: unknown, table: string, { name }: Dialect): unknown => {
  if (!isMissing(error)) return error;
  const { message } = error as Error;
  const own = table === 'idempotency_keys' ? '' : `, { table: '${table}' }`;
  return new StoreUnavailableError(
    `The table ${table} is missing, or is not samekey's: ${message}. Run migrate(database, '${name}'${own}), or name the store's table if it is another one.`,
    { cause: error },
  );
};
