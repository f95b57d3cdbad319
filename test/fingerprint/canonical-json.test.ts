import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/canonical-json.js';

/** The value as another writer may spell it: members the other way round, white space, characters escaped. */
const respelled = (value: unknown): string => {
  if (typeof value === 'string') return `"${Array.from({ length: value.length }, (_, at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
  if (Array.isArray(value)) return `[ ${value.map(respelled).join(' ,\n')} ]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).reverse().map(([name, member]) => `${respelled(name)}\t: ${respelled(member)}`);
  return `{\r\n${members.join(' , ')}}`;
};

describe('canonicalJson', () => {
  it('gives every spelling of a value one text, and that text means the value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), value => {
        const canonical = canonicalJson(JSON.stringify(value));
        expect(canonicalJson(respelled(value))).toBe(canonical);
        // Through JSON once, because it knows no -0.
        expect(JSON.parse(canonical as string)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(canonical as string)).toBe(canonical);
      }),
    );
  });

  it('gives two different values two texts', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (one, other) => {
        const same = canonicalJson(JSON.stringify(one)) === canonicalJson(JSON.stringify(other));
        expect(same).toBe(JSON.stringify(sorted(one)) === JSON.stringify(sorted(other)));
      }),
    );
  });

  const equal: [string, string][] = [['1', '1.0'], ['1', '1e0'], ['100', '1E+2'], ['0.001', '1e-3'], ['-0', '0'], ['0.0', '0e5'], ['12.50', '1250e-2'], ['"\\u00e9"', '"é"'], ['"\\/"', '"/"']];
  for (const [one, other] of equal) it(`C80, C81: ${one} equals ${other}`, () => expect(canonicalJson(one)).toBe(canonicalJson(other)));

  const different: [string, string][] = [
    ['9007199254740993', '9007199254740992'], ['1e400', '1e401'], ['1', '"1"'], ['-1', '1'], ['"é"', '"e\u0301"'], ['null', '"null"'], ['[1,2]', '[2,1]'], ['[[],[]]', '[[[]]]'],
    ['{"a":null}', '{}'], ['"\\ud800"', '"\\ud801"'], ['0.1', '0.10000000000000001'],
  ];
  for (const [one, other] of different) {
    it(`C80, C81: ${one} differs from ${other}`, () => {
      expect(canonicalJson(one)).toBeDefined();
      expect(canonicalJson(one)).not.toBe(canonicalJson(other));
    });
  }

  const meaningless = ['', ' ', '{', '[1,]', '{"a":1,}', '01', '1.', '.5', '+1', 'NaN', 'Infinity', 'undefined', "'a'", '"\t"', '"\\x41"', '{a:1}', '1 2', '\uFEFF1', '1\u00a0', '{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '1e9999999999999999', '[1 2]', '{"a" 1}', '{"a":}', ']'];
  for (const text of meaningless) it(`C80: ${JSON.stringify(text)} has no single meaning`, () => expect(canonicalJson(text)).toBeUndefined());

  it('takes nesting as deep as honest requests have, and refuses deeper without a stack overflow', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(canonicalJson(nested(100))).toBe(nested(100));
    expect(canonicalJson(nested(100_000))).toBeUndefined();
  });

  it('takes long strings, long numbers and hostile runs of zeros in its stride', () => {
    const text = 'é'.repeat(2_000_000);
    expect(canonicalJson(`"${text}"`)?.length).toBe(text.length + 2);
    const zeros = `1${'0'.repeat(500_000)}1`;
    expect(canonicalJson(zeros)).toBe(`${zeros}e0`);
  }, 10_000);
});

/** Members in one order, however deep; -0 as 0. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return { members: Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]) };
};
