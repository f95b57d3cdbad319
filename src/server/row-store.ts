import { claimRecord, renewRecord, resolveRecord, settleRecord, tidyRecord, type Change, type DedupRecord, type RecordRef, type Tidied } from './record.js';
import { PURGE_LIMIT, type DedupStore, type PurgeReport } from './store.js';

/** What a table of plain rows must be able to do. The functions it is given are pure: it may call them again when it has to start over. */
export interface Rows {
  get(ref: RecordRef): Promise<DedupRecord | undefined>;
  /** Reads one row, lets `change` decide on the store's time, and writes what it wants: one atomic step. */
  update<T>(ref: RecordRef, change: (row: DedupRecord | undefined, now: number) => Change<T>): Promise<T>;
  /** Does to each row what `tidy` says, until `limit` rows are changed: one atomic step. Answers with all that was not `kept`. */
  tidy(tidy: (row: DedupRecord, now: number) => Tidied, limit: number): Promise<Tidied[]>;
}

/** Whether tidying touches the row. */
export const isChange = ({ kind }: Tidied): boolean => kind !== 'kept' && kind !== 'in-doubt';

const report = (tidied: readonly Tidied[], limit: number): PurgeReport => {
  const count = (kind: Tidied['kind']): number => tidied.filter(one => one.kind === kind).length;
  const doubts = tidied.flatMap(one => ('since' in one ? [one.since] : []));
  return {
    deleted: count('deleted'),
    bodiesDropped: count('body-dropped'),
    doubted: count('doubted'),
    indeterminate: doubts.length,
    oldestIndeterminateAt: doubts.length === 0 ? undefined : doubts.reduce((a, b) => Math.min(a, b)),
    more: tidied.filter(isChange).length >= limit,
  };
};

/** A dedup store over plain rows: they keep, `record.ts` decides. */
export const rowStore = (rows: Rows): DedupStore<never> => ({
  claim: claim => rows.update(claim, (row, now) => claimRecord(row, claim, now)),
  renew: (hold, lease, effectStarted) => rows.update(hold, (row, now) => renewRecord(row, hold, lease, effectStarted, now)),
  settle: (hold, settlement) => rows.update(hold, (row, now) => settleRecord(row, hold, settlement, now)),
  resolve: (ref, resolution) => rows.update(ref, (row, now) => resolveRecord(row, resolution, now)),
  get: ref => rows.get(ref),
  purge: async ({ limit = PURGE_LIMIT, dropIndeterminateAfter } = {}) =>
    report(await rows.tidy((row, now) => tidyRecord(row, dropIndeterminateAfter, now), limit), limit),
});
