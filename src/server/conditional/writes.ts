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

/** Sets values, and counts the version up if that made a difference. The version that the row has now. */
export const setValues = async (target: Target, before: VersionedRow, values: RowValues): Promise<number> => {
  const { on, rows, id } = target;
  const [from, to] = [before.version, before.version + 1];
  if (!(await rows.update(on, id, { values, from, to }))) throw notLocked(id);
  // What is the same, the database knows: it rounds, pads and converts what it is given. So it writes, and what it reads then is compared.
  const after = await rows.lock(on, id);
  if (!after || !sameValues(Object.keys(values), before.values, after.values)) return to;
  await rows.update(on, id, { values: {}, from: to, to: from });
  return from;
};

/** Rounds in which a row can be there for an insert and gone for the lock, because others delete it; nobody is that unlucky. */
const ROUNDS = 20;

/** Inserts the row with this version unless it is there, and locks what is there then. `mayInsert` is asked each time it is not. */
export const insertOrLock = async <Refusal>(
  { on, rows, id }: Target,
  row: { readonly values: RowValues; readonly version: number },
  mayInsert: () => Refusal | undefined,
): Promise<VersionedRow | Refusal> => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const there = (await rows.lock(on, id)) ?? mayInsert();
    if (there) return there;
    await rows.insert(on, id, row);
  }
  throw new Error(`A row "${id}" cannot be made: another row has a value that a unique index of the table allows only once. Give it another one, or write that row.`);
};

export const removeRow = async ({ on, rows, id }: Target, { version }: VersionedRow): Promise<void> => {
  if (!(await rows.remove(on, id, version))) throw notLocked(id);
};
