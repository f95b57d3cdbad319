import type { SqlExecutor } from '../../sql/database.js';
import type { RowId, RowValues, VersionedRow, VersionedRows } from './rows.js';
import { sameValues } from './same-values.js';

/** What a write is done to: the row, as it was locked in the transaction of `on`. */
export interface Target {
  readonly on: SqlExecutor;
  readonly rows: VersionedRows;
  readonly id: RowId;
}

const notLocked = (id: RowId): Error =>
  new Error(`The row "${id}" was changed between its lock and its write. Give within() what runs inside a transaction: the lock ends with it.`);

const lockAgain = async ({ on, rows, id }: Target): Promise<VersionedRow> => {
  const row = await rows.lock(on, id);
  if (row) return row;
  throw new Error(`The row "${id}" was written and is not there. Another row has a value that a unique index of the table allows once only, or a trigger removed it.`);
};

/** Sets values, and counts the version up if that made a difference. The version that the row has now. */
export const setValues = async (target: Target, before: VersionedRow, values: RowValues): Promise<number> => {
  const { on, rows, id } = target;
  const [from, to] = [before.version, before.version + 1];
  if (!(await rows.update(on, id, { values, from, to }))) throw notLocked(id);
  // What is the same, the database knows: it rounds, pads and converts what it is given. So it writes, and what it reads then is compared.
  const after = await lockAgain(target);
  if (!sameValues(Object.keys(values), before.values, after.values)) return to;
  await rows.update(on, id, { values: {}, from: to, to: from });
  return from;
};

/** Inserts the row with this version, unless somebody else was faster. The row that is there now, locked. */
export const insertRow = async (target: Target, values: RowValues, version: number): Promise<VersionedRow> => {
  await target.rows.insert(target.on, target.id, { values, version });
  return lockAgain(target);
};

export const removeRow = async ({ on, rows, id }: Target, { version }: VersionedRow): Promise<void> => {
  if (!(await rows.remove(on, id, version))) throw notLocked(id);
};
