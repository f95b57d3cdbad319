import { expect, test } from 'vitest';
import { asBytes, asNumber } from '../../src/sql/index.js';
import { toDriverValues } from '../../src/sql/values.js';

test.each([[7, 7], ['7', 7], [7n, 7], ['-9007199254740991', -9_007_199_254_740_991], [0, 0]])('asNumber of %s is %s', (value, number) => {
  expect(asNumber(value)).toBe(number);
});

test.each([[null], [undefined], [''], [' '], ['seven'], [Number.NaN], [{}], [new Date(0)]])('asNumber of %s is an error that says what came', value => {
  expect(() => asNumber(value)).toThrow(/came where a number was expected/);
});

test('asBytes gives bytes of its own, which the memory that a driver uses again does not change', () => {
  const memory = Buffer.from([1, 2, 3, 4]);
  const bytes = asBytes(memory.subarray(1, 3));
  memory.fill(0);
  expect([...bytes]).toEqual([2, 3]);
  const { buffer } = new Uint8Array([5, 6]);
  const copy = asBytes(buffer);
  new Uint8Array(buffer).fill(0);
  expect([...copy]).toEqual([5, 6]);
});

test.each([[null], ['\\xff00'], [[1, 2]], [{ type: 'Buffer', data: [1] }]])('asBytes of %j is an error that says what came', value => {
  expect(() => asBytes(value)).toThrow(/came where bytes were expected/);
});

test('drivers get bytes as the Buffers that they know, without a copy', () => {
  const bytes = new Uint8Array([1, 2, 3]).subarray(1);
  const [given, text] = toDriverValues([bytes, 'text']);
  expect(Buffer.isBuffer(given)).toBe(true);
  expect([...(given as Buffer)]).toEqual([2, 3]);
  expect((given as Buffer).buffer).toBe(bytes.buffer);
  expect(text).toBe('text');
});
