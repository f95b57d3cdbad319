/**
 * Serialises as JSON does, and tells of a number that JSON has no word for: it would be sent as null.
 *
 * @param found - called with what was found, as it stands in the data
 */
export const toJson = (data: unknown, found: (what: string) => void): string =>
  JSON.stringify(data, (name, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) found(name === '' ? String(value) : `"${name}": ${value}`);
    return value;
  });
