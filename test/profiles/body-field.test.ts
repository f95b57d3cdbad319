import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bodyField } from '../../src/profiles/index.js';

const field = bodyField('idempotency_key');
const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const write = (text: string, key = 'K'): string => new TextDecoder().decode(field.write(bytes(text), key));

describe('a key in the body', () => {
  it('is read where it is', () => {
    expect(field.read(bytes('{"idempotency_key":"k","amount":1}'))).toBe('k');
    expect(field.read(bytes('{"idempotency\\u005fkey":"k"}'))).toBe('k');
    expect(field.read(bytes('{"order":{"idempotency_key":"inner"}}'))).toBeUndefined();
    for (const none of ['{}', '{"idempotency_key":null}', '[]', '"text"', 'no JSON', '']) expect(field.read(bytes(none))).toBeUndefined();
    expect(field.read(null)).toBeUndefined();
  });

  it('that is no string is an error, not overlooked', () => {
    for (const json of ['{"idempotency_key":7}', '{"idempotency_key":["k"]}']) expect(() => field.read(bytes(json))).toThrow('carries the key, and holds');
  });

  it('is written as the first member, and leaves every other byte as it was', () => {
    expect(write('{}')).toBe('{"idempotency_key":"K"}');
    expect(write('{ }')).toBe('{"idempotency_key":"K" }');
    expect(write(' {"amount":12345678901234567890, "unit":1.0,"a":1,"a":2}')).toBe(' {"idempotency_key":"K","amount":12345678901234567890, "unit":1.0,"a":1,"a":2}');
    expect(write('{"a":"ü"}', 'a"b\\c')).toBe('{"idempotency_key":"a\\"b\\\\c","a":"ü"}');
  });

  it('replaces the one that is there, wherever it stands and whatever it is', () => {
    expect(write('{"a":"idempotency_key","idempotency_key" : "old" ,"b":[1,{"idempotency_key":"inner"}]}')).toBe('{"a":"idempotency_key","idempotency_key" :"K","b":[1,{"idempotency_key":"inner"}]}');
    expect(write('{"idempotency_key":null}')).toBe('{"idempotency_key":"K"}');
    expect(write('{"idempotency\\u005fkey":"old","a":"},{:\\""}')).toBe('{"idempotency\\u005fkey":"K","a":"},{:\\""}');
    expect(write('{"idempotency_key":"one","idempotency_key":"two"}')).toBe('{"idempotency_key":"K","idempotency_key":"K"}');
  });

  it('cannot be written into what is not one JSON object', () => {
    for (const body of ['', 'amount=1', '[1]', '"text"', '{"a":1', '{} {}']) expect(() => write(body)).toThrow('a JSON object, and this body');
    expect(() => field.write(null, 'K')).toThrow('this body (0 bytes) is not one');
    expect(() => field.write(new Uint8Array([0x7b, 0xff, 0x7d]), 'K')).toThrow(TypeError);
  });

  it('is read as it was written, into any JSON object, and nothing else changes', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.constantFrom(0, 2), (object, key, indent) => {
        const written = JSON.parse(write(JSON.stringify(object, null, indent), key)) as Record<string, unknown>;
        expect(written).toEqual({ ...JSON.parse(JSON.stringify(object)), idempotency_key: key });
      }),
    );
  });

  it('is found in a body as large as a client keeps', () => {
    const long = JSON.stringify({ note: 'x\\"'.repeat(3_000_000), idempotency_key: 'old' });
    expect(field.read(bytes(write(long)))).toBe('K');
  });

  it('may have any name', () => {
    const odd = bodyField('a "b"');
    const body = odd.write(bytes('{"c":1}'), 'k');
    expect([new TextDecoder().decode(body), odd.read(body)]).toEqual(['{"a \\"b\\"":"k","c":1}', 'k']);
  });
});
