/** RFC 9562: 48 bits of time, the version, the variant. */
const UUID_V7 = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

/**
 * When a key says that it was made, ms since 1970 on its maker's clock: UUIDv7 say so, other keys say nothing. It is the
 * maker's word, so it may serve to refuse a key, and never to trust one.
 */
export const keyMadeAt = (key: string): number | undefined => {
  const [, high, low] = UUID_V7.exec(key) ?? [];
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16);
};
