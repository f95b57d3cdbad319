import type { SqlValue } from './database.js';

/** What drivers give for an integer column: 64-bit ones come as text, bigint or number, by driver and setting. */
export const asNumber = (value: unknown): number => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : typeof value === 'bigint' ? Number(value) : value;
  if (typeof number === 'number' && Number.isFinite(number)) return number;
  throw new TypeError(`${describe(value)} came where a number was expected. Check the type of the column, and what the driver is told to make of it.`);
};

/**
 * What drivers give for a binary column (`bytea`, `VARBINARY`, `BLOB`), as bytes of its own: a driver's Buffer may be a
 * window on memory that it uses again.
 */
export const asBytes = (value: unknown): Uint8Array<ArrayBuffer> => {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value.slice(0));
  throw new TypeError(`${describe(value)} came where bytes were expected. Check that the column is binary: bytea, VARBINARY, LONGBLOB or BLOB.`);
};

const describe = (value: unknown): string => (value === null ? 'null' : typeof value === 'string' ? `The text ${JSON.stringify(value.slice(0, 40))}` : `A value of type ${typeof value}`);

/** Bytes as Buffers, which every version of every driver knows: older ones take a plain Uint8Array for an object, and write it as text. */
export const toDriverValues = (values: readonly SqlValue[]): unknown[] =>
  values.map(value => (value instanceof Uint8Array && !Buffer.isBuffer(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value));
