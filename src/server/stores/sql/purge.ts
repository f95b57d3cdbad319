import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { raw, sql, type Statement } from '../../../sql/statement.js';
import { asNumber } from '../../../sql/values.js';
import { tidyRecord, unlocked, type RecordRef } from '../../record.js';
import { PURGE_LIMIT, type PurgeOptions, type PurgeReport } from '../../store.js';
import type { Table } from './table.js';

/** Rows per transaction: their locks are held no longer than that takes. */
const BATCH = 500;

type Counts = { readonly [Kind in 'deleted' | 'body-dropped' | 'doubted']: number };

const NOTHING: Counts = { deleted: 0, 'body-dropped': 0, doubted: 0 };

const sum = (a: Counts, b: Counts): Counts => ({
  deleted: a.deleted + b.deleted, 'body-dropped': a['body-dropped'] + b['body-dropped'], doubted: a.doubted + b.doubted,
});

const changes = (counts: Counts): number => counts.deleted + counts['body-dropped'] + counts.doubted;

/** Rows that are due, each condition in the words of an index of its own. */
const dueConditions = ({ dialect: { past, later } }: Table, dropIndeterminateAfter: number | undefined): Statement[] => {
  const ended = sql`(status IN ('completed', 'retryable') OR (status = 'in_progress' AND ${past('lease_until')}))`;
  const bodies = sql`status = 'completed' AND body_omitted IS NULL AND result_expires_at < expires_at AND ${past('result_expires_at')}`;
  const doubts = dropIndeterminateAfter === undefined ? [] : [sql`status = 'indeterminate' AND settled_at <= ${later(-dropIndeterminateAfter)}`];
  return [sql`${past('expires_at')} AND ${ended}`, bodies, ...doubts];
};

type Apply = (table: Table, on: SqlExecutor, refs: readonly RecordRef[]) => Promise<unknown>;

const update = (columns: (table: Table) => Statement): Apply => (table, on, refs) =>
  table.run(on, table.dialect.updateRows(table.names.keys, sql`${columns(table)}, revision = revision + 1`, refs));

const FORGOTTEN =
  "request_hash = CASE WHEN status = 'in_progress' THEN request_hash END, response_code = NULL, response_headers = NULL, response_body = NULL, body_omitted = NULL, result_expires_at = NULL";

/** What is done to the rows of which `tidyRecord` says so. */
const APPLY: { readonly [Kind in keyof Counts]: Apply } = {
  async deleted({ run, names, dialect }, on, refs) {
    for (const table of [names.keys, names.effects]) await run(on, dialect.deleteRows(table, refs));
  },
  'body-dropped': update(() => raw("response_headers = '[]', response_body = NULL, body_omitted = 'expired'")),
  // First what depends on the old status: MySQL assigns one after the other. A row that ended tells of an earlier run than the one in doubt.
  doubted: update(({ dialect }) => sql`${raw(FORGOTTEN)}, status = 'indeterminate', reason = 'the lease ended before the run did', settled_at = ${dialect.later(0)}`),
};

interface Due {
  readonly condition: Statement;
  readonly limit: number;
  readonly dropIndeterminateAfter: number | undefined;
}

/** Locks some rows that are due, and does to each what the functions of `record.ts` say. */
const tidyBatch = async (table: Table, on: SqlExecutor, { condition, limit, dropIndeterminateAfter }: Due): Promise<Counts> => {
  const refs: { [Kind in keyof Counts]: RecordRef[] } = { deleted: [], 'body-dropped': [], doubted: [] };
  for (const { row, now } of await table.select(on, condition, sql`LIMIT ${raw(String(limit))} ${table.dialect.skipLocked}`)) {
    const { kind } = tidyRecord(unlocked(row), dropIndeterminateAfter, now);
    if (kind in refs) refs[kind as keyof Counts].push(row);
  }
  for (const kind of Object.keys(refs) as (keyof Counts)[]) {
    if (refs[kind].length > 0) await APPLY[kind](table, on, refs[kind]);
  }
  return { deleted: refs.deleted.length, 'body-dropped': refs['body-dropped'].length, doubted: refs.doubted.length };
};

/** Bounded batches, each a short transaction that waits for nobody. */
export const purgeTable = async (database: SqlDatabase, table: Table, { limit = PURGE_LIMIT, dropIndeterminateAfter }: PurgeOptions = {}): Promise<PurgeReport> => {
  let counts = NOTHING;
  for (const condition of dueConditions(table, dropIndeterminateAfter)) {
    for (let size = BATCH, done = BATCH; done >= size && done > 0; ) {
      size = Math.min(BATCH, limit - changes(counts));
      if (size <= 0) break;
      const due = { condition, limit: size, dropIndeterminateAfter };
      // No rows are read twice in a batch, and a stricter level would lock the gaps between them too.
      const batch = await database.transaction(on => tidyBatch(table, on, due), { isolation: 'read committed' });
      done = changes(batch);
      counts = sum(counts, batch);
    }
  }
  const { millis } = table.dialect;
  const doubts = await table.run(database, sql`SELECT COUNT(*) AS doubts, MIN(${millis(raw('settled_at'))}) AS oldest FROM ${table.names.keys} WHERE status = 'indeterminate'`);
  const { doubts: indeterminate, oldest } = doubts.rows[0] ?? {};
  return {
    deleted: counts.deleted,
    bodiesDropped: counts['body-dropped'],
    doubted: counts.doubted,
    indeterminate: asNumber(indeterminate),
    oldestIndeterminateAt: oldest === null || oldest === undefined ? undefined : asNumber(oldest),
    more: changes(counts) >= limit,
  };
};
