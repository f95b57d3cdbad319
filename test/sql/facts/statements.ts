import { expect, test } from 'vitest';
import { asBytes, asNumber, type SqlValue } from '../../../src/sql/index.js';
import { marks, type AnySubject } from '../subject.js';
import { addItem, countItems, failureOf } from './items.js';

const store = async ({ database, dialect }: AnySubject, row: { amount?: SqlValue; note?: SqlValue; data?: SqlValue }): Promise<Readonly<Record<string, unknown>>> => {
  await database.query(`INSERT INTO item (id, amount, note, data) VALUES (${marks(dialect, 4).join(', ')})`, ['it', row.amount ?? null, row.note ?? null, row.data ?? null]);
  const { rows } = await database.query(`SELECT amount, note, data FROM item WHERE id = ${marks(dialect, 1)[0]}`, ['it']);
  return rows[0] as Readonly<Record<string, unknown>>;
};

/** Everything that a driver may escape, quote or count wrongly. */
const TEXTS = ['', `'; DROP TABLE item; --`, String.raw`a\'b\\c`, 'is it $1 or ? or :name', 'line\nbreak\ttab', 'naïve 日本語 🚀'];

const BYTES = [new Uint8Array([0xff, 0xfe, 0x00, 0x80, 0x27, 0x5c, 0x3f]), new Uint8Array(0), new Uint8Array(100_000).map((_, at) => at % 256)];

export const statementFacts = (subject: () => AnySubject): void => {
  test.each(TEXTS)('the text %j survives', async text => {
    expect((await store(subject(), { note: text }))['note']).toBe(text);
  });

  test('what looks like a placeholder inside a text of the statement is text', async () => {
    const { database, dialect } = subject();
    const { rows } = await database.query(`SELECT '? and $1 and ''?''' AS said, ${dialect === 'mysql' ? 'CONCAT(?)' : `CAST(${marks(dialect, 1)[0]} AS text)`} AS given`, ['it']);
    expect(rows).toEqual([{ said: `? and $1 and '?'`, given: 'it' }]);
  });

  test.each([0, -1, Number.MAX_SAFE_INTEGER, 9_007_199_254_740_991n, -2_147_483_649])('the integer %s survives', async amount => {
    expect(asNumber((await store(subject(), { amount }))['amount'])).toBe(Number(amount));
  });

  test('true and false are written as 1 and 0, or as what the column has for them', async () => {
    const { database, dialect } = subject();
    const column = dialect === 'postgres' ? 'boolean' : 'integer';
    await database.query(`CREATE TABLE flag (yes ${column}, no ${column})`);
    await database.query(`INSERT INTO flag VALUES (${marks(dialect, 2).join(', ')})`, [true, false]);
    const { rows } = await database.query('SELECT yes, no FROM flag');
    expect([rows[0]?.['yes'], rows[0]?.['no']].map(Number)).toEqual([1, 0]);
  });

  test('a number can say how many rows there shall be', async () => {
    const { database, dialect } = subject();
    for (const id of ['a', 'b', 'c']) await addItem(database, dialect, id);
    expect((await database.query(`SELECT id FROM item ORDER BY id LIMIT ${marks(dialect, 1)[0]}`, [2])).rows).toHaveLength(2);
  });

  test('columns have the names that the statement gives them', async () => {
    expect(Object.keys((await subject().database.query('SELECT 1 AS with_underscore, 2 AS alone')).rows[0] ?? {})).toEqual(['with_underscore', 'alone']);
  });

  test('null is null, and an empty text is not', async () => {
    expect(await store(subject(), { note: '' })).toEqual({ amount: null, note: '', data: null });
  });

  test.each(BYTES)('bytes survive, %#', async bytes => {
    const { data } = await store(subject(), { data: bytes });
    expect(Buffer.compare(asBytes(data), bytes)).toBe(0);
  });

  test('a window on a larger buffer is stored as the window', async () => {
    const whole = new Uint8Array([1, 2, 3, 4, 5]);
    expect([...asBytes((await store(subject(), { data: whole.subarray(1, 4) }))['data'])]).toEqual([2, 3, 4]);
    await subject().database.query('DELETE FROM item');
    expect([...asBytes((await store(subject(), { data: Buffer.from(whole).subarray(1, 4) }))['data'])]).toEqual([2, 3, 4]);
  });

  test('changed counts the rows that were touched', async () => {
    const { database, dialect } = subject();
    expect((await addItem(database, dialect, 'a')).changed).toBe(1);
    await addItem(database, dialect, 'b');
    const [mark] = marks(dialect, 1);
    expect((await database.query('UPDATE item SET amount = amount + 1')).changed).toBe(2);
    expect((await database.query(`UPDATE item SET amount = amount + 1 WHERE id = ${mark}`, ['nobody'])).changed).toBe(0);
    expect((await database.query(`DELETE FROM item WHERE id = ${mark}`, ['nobody'])).changed).toBe(0);
    expect((await database.query('DELETE FROM item')).changed).toBe(2);
  });

  test('an insert that meets its row and leaves it changes nothing', async () => {
    const { database, dialect } = subject();
    const insert = dialect === 'mysql' ? 'INSERT IGNORE INTO item (id) VALUES (?)' : `INSERT INTO item (id) VALUES (${marks(dialect, 1)[0]}) ON CONFLICT DO NOTHING`;
    expect((await database.query(insert, ['a'])).changed).toBe(1);
    expect((await database.query(insert, ['a'])).changed).toBe(0);
    expect(await countItems(database)).toBe(1);
  });

  test('a statement that returns rows counts them as well', async context => {
    const { database, dialect } = subject();
    if (dialect === 'mysql') context.skip('MySQL has no RETURNING');
    const [mark] = marks(dialect, 1);
    const insert = `INSERT INTO item (id) VALUES (${mark}) ON CONFLICT DO NOTHING RETURNING id`;
    expect(await database.query(insert, ['a'])).toEqual({ rows: [{ id: 'a' }], changed: 1 });
    expect(await database.query(insert, ['a'])).toEqual({ rows: [], changed: 0 });
  });

  test('a failing statement rejects with the error of the driver and its code', async () => {
    const { database, dialect } = subject();
    await addItem(database, dialect, 'a');
    const codes = { postgres: { code: '23505' }, mysql: { code: 'ER_DUP_ENTRY', errno: 1062 }, sqlite: { code: 'ERR_SQLITE_ERROR', errcode: 1555 } };
    expect(await failureOf(addItem(database, dialect, 'a'))).toMatchObject(codes[dialect]);
  });
};
