import type { SqlResult } from './database.js';

type Rows = SqlResult['rows'];

interface PgResult {
  readonly rows: Rows;
  readonly rowCount: number | null;
}

/** What a driver answered, given as it is by a library that knows several: `pg`, `postgres` or `mysql2`. */
export const resultOf = (answer: unknown): SqlResult => {
  if (!Array.isArray(answer)) {
    const { rows, rowCount } = answer as PgResult;
    return { rows, changed: rowCount ?? 0 };
  }
  const { count } = answer as { readonly count?: number };
  if (count !== undefined) return { rows: [...(answer as unknown as Rows)], changed: count };
  const [result] = answer as [Rows | { readonly affectedRows: number }];
  return 'affectedRows' in result ? { rows: [], changed: result.affectedRows } : { rows: result, changed: result.length };
};
