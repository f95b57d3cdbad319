import { expect, test } from 'vitest';
import type { VersionedRow, VersionedRows } from '../../../src/server/conditional/rows.js';
import { insertOrLock, removeRow, setValues, type Target } from '../../../src/server/conditional/writes.js';
import { failureOf } from '../../sql/facts/items.js';

const on = { query: () => Promise.reject(new Error('not by itself')) };
const row = (version: number): VersionedRow => ({ version, values: {} });

/** A row that others change at moments that a real database cannot be made to choose: what each lock finds. */
const targetOf = (found: readonly (VersionedRow | undefined)[]): { readonly target: Target; readonly inserts: () => number } => {
  let [locks, inserts] = [0, 0];
  const rows: VersionedRows = {
    read: async () => undefined,
    lock: async () => found[Math.min(locks++, found.length - 1)],
    insert: async () => void (inserts += 1),
    update: async () => false,
    remove: async () => false,
  };
  return { target: { on, rows, id: '1' }, inserts: () => inserts };
};

const insert = (target: Target): Promise<unknown> => insertOrLock(target, { values: {}, version: 7 }, () => undefined);

test('a row that was there for the insert and deleted before its lock is inserted again', async () => {
  const { target, inserts } = targetOf([undefined, undefined, undefined, row(7)]);
  expect([await insert(target), inserts()]).toEqual([row(7), 3]);
});

test('a row that is never there, because another unique index is in the way, is an error that says so', async () => {
  expect(await failureOf(insert(targetOf([undefined]).target))).toMatchObject({ message: expect.stringContaining('unique index') });
});

test('whoever may not insert does not', async () => {
  const { target, inserts } = targetOf([undefined]);
  expect([await insertOrLock(target, { values: {}, version: 7 }, () => 'refused'), inserts()]).toEqual(['refused', 0]);
});

test('a lock that did not hold, because there was no transaction, is an error, and nothing was written', async () => {
  const { target } = targetOf([row(7)]);
  for (const failure of [failureOf(setValues(target, row(6), { status: 'paid' })), failureOf(removeRow(target, row(6)))]) {
    expect(await failure).toMatchObject({ message: expect.stringContaining('inside a transaction') });
  }
});
