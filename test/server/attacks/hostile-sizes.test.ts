import { describe, expect, it } from 'vitest';
import { fingerprint } from '../../../src/fingerprint.js';
import { readTags } from '../../../src/server/conditional/etag.js';

const of = (contentType: string, text: string): Promise<string> =>
  fingerprint({ method: 'POST', target: '/charges', query: '', contentType, body: new TextEncoder().encode(text) });

const MANY = 200_000;

/** Bodies with so many parts, and the same ones in another spelling. */
const bodies: Record<string, (parts: number) => { type: string; one: string; other: string }> = {
  'JSON': parts => ({ type: 'application/json', one: `[${'1,'.repeat(parts)}1]`, other: `[${'1,'.repeat(parts)} 1]` }),
  'a form': parts => ({ type: 'application/x-www-form-urlencoded', one: 'a=1&'.repeat(parts), other: `${'a=1&'.repeat(parts)}&` }),
  'multipart': parts => ({ type: 'multipart/form-data; boundary=x', one: `--x${'\r\n--x'.repeat(parts)}--`, other: `--x${'\r\n--x'.repeat(parts)}--\r\n` }),
};

describe('a body that would be taken apart for seconds, while nobody else is served, is compared by its bytes', () => {
  it.each(Object.keys(bodies))('%s', async name => {
    const made = bodies[name];
    const [few, many] = [made?.(10), made?.(MANY)];
    expect(await of(few?.type ?? '', few?.one ?? '')).toBe(await of(few?.type ?? '', few?.other ?? ''));
    expect(await of(many?.type ?? '', many?.one ?? '')).not.toBe(await of(many?.type ?? '', many?.other ?? ''));
    expect(await of(many?.type ?? '', many?.one ?? '')).toBe(await of(many?.type ?? '', many?.one ?? ''));
  });
});

describe('an If-Match that is made to take quadratic time', () => {
  const blanks = ' '.repeat(1_000_000);
  // With a pattern that goes back and forth they take half an hour.
  it.each([`,${blanks}x`, `"a"${blanks}x`, `${blanks}x`, `"a",${blanks}"`])('is refused in one pass', header => {
    expect(readTags(header)).toBeUndefined();
  });
  it('is read in one pass where it makes sense', () => {
    expect(readTags(`"a"${blanks},${blanks}W/"b"`)).toEqual([{ tag: 'a', isWeak: false }, { tag: 'b', isWeak: true }]);
  });
});
