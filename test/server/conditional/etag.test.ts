import { expect, test } from 'vitest';
import { etagOf, matchesStrongly, matchesWeakly, readTags } from '../../../src/server/conditional/etag.js';

test.each([
  [7, '"7"'], [9_007_199_254_740_993n, '"9007199254740993"'], ['a,b-c', '"a,b-c"'], ['', '""'],
])('the version %s is the entity tag %s', (version, etag) => {
  expect(etagOf(version)).toBe(etag);
  expect(matchesStrongly(readTags(etag) ?? [], version)).toBe(true);
});

test.each(['a"b', 'a b', 'é', 'a\nb'])('the version %j cannot be one, which is said', version => {
  expect(() => etagOf(version)).toThrow('cannot be an ETag');
});

test.each([
  ['*', '*'],
  [' * ', '*'],
  ['"7"', [{ tag: '7', isWeak: false }]],
  ['W/"7"', [{ tag: '7', isWeak: true }]],
  ['"a", W/"b" ,"c,d"', [{ tag: 'a', isWeak: false }, { tag: 'b', isWeak: true }, { tag: 'c,d', isWeak: false }]],
  [', "a",, "b" ,', [{ tag: 'a', isWeak: false }, { tag: 'b', isWeak: false }]],
  ['""', [{ tag: '', isWeak: false }]],
])('%s is read as it is meant', (header, tags) => {
  expect(readTags(header)).toEqual(tags);
});

test.each(['', ' ', ',', '7', '"7', '7"', '"a" "b"', 'w/"7"', 'W/7', '*, "7"', '"7", *', '"a"b', '"a b"'])('%j is no list of entity tags', header => {
  expect(readTags(header)).toBeUndefined();
});

test('a weak tag matches weakly only', () => {
  const tags = readTags('W/"7"') ?? [];
  expect([matchesStrongly(tags, 7), matchesWeakly(tags, 7)]).toEqual([false, true]);
});

test('nothing matches what does not exist, not even *', () => {
  expect([matchesStrongly('*', undefined), matchesWeakly('*', undefined)]).toEqual([false, false]);
});
