const bytesOf = (value: unknown): Uint8Array | undefined => (value instanceof Uint8Array ? value : undefined);

const sameBytes = (one: Uint8Array, other: Uint8Array): boolean => one.length === other.length && one.every((byte, at) => byte === other[at]);

/** Whether two values of one column are the same; both come from one driver, which makes the same of the same. */
const sameValue = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  const [bytes, otherBytes] = [bytesOf(one), bytesOf(other)];
  if (bytes && otherBytes) return sameBytes(bytes, otherBytes);
  // Dates, and what drivers parse out of JSON columns, which databases keep in one order.
  return JSON.stringify(one) === JSON.stringify(other);
};

/** Whether two readings of a row agree in these columns. */
export const sameValues = (columns: readonly string[], one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean =>
  columns.every(column => sameValue(one[column], other[column]));
