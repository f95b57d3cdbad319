import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { fingerprint, type FingerprintInput } from '../../src/fingerprint.js';
import golden from './vectors.json' with { type: 'json' };

const utf8 = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

const of = (more: Partial<FingerprintInput> = {}): Promise<string> =>
  fingerprint({ method: 'POST', target: '/t', query: '', contentType: 'application/json', body: utf8('{}'), ...more });

describe('golden vectors of fingerprint v1', () => {
  for (const { what, request, hashed } of golden.vectors) {
    it(what, async () => {
      const { contentType, body, ...rest } = request as { contentType?: string; body: string; method: string; target: string; query: string };
      // The hash comes from another implementation than the one under test.
      const sha256 = createHash('sha256').update(hashed, 'utf8').digest('hex');
      expect(await fingerprint({ ...rest, contentType, body: utf8(body) })).toBe(`v1:sha256:${sha256}`);
    });
  }
});

describe('what makes two requests different', () => {
  const pairs: Record<string, readonly [Partial<FingerprintInput>, Partial<FingerprintInput>]> = {
    'a method': [{ method: 'POST' }, { method: 'PUT' }],
    'an origin': [{ target: 'https://a.example/t' }, { target: 'https://b.example/t' }],
    'a path with a colon': [{ target: '/a:b' }, { target: '/a', query: 'b' }],
    'query bytes that are not UTF-8': [{ query: 'a=%FF' }, { query: 'a=%FE' }],
    'a percent sign that was escaped': [{ query: 'a=%FF' }, { query: 'a=%25FF' }],
    'form bytes that are not UTF-8': [
      { contentType: 'application/x-www-form-urlencoded', body: utf8('a=%FF') },
      { contentType: 'application/x-www-form-urlencoded', body: utf8('a=%FE') },
    ],
    'the order of a form': [
      { contentType: 'application/x-www-form-urlencoded', body: utf8('a=1&b=2') },
      { contentType: 'application/x-www-form-urlencoded', body: utf8('b=2&a=1') },
    ],
    'JSON bytes that are not UTF-8': [{ body: new Uint8Array([0x22, 0xff, 0x22]) }, { body: new Uint8Array([0x22, 0xfe, 0x22]) }],
    'a byte order mark': [{ body: utf8('{}') }, { body: utf8('\uFEFF{}') }],
    'a media type': [{ contentType: 'application/json' }, { contentType: 'application/merge-patch+json' }],
    'an account': [{ identity: ['acct_1'] }, { identity: ['acct_2'] }],
    'which identity header it came in': [{ identity: ['a', ''] }, { identity: ['', 'a'] }],
    'a body and its canonical text sent as text': [{ contentType: 'text/plain', body: utf8('{"a":1e0}') }, { contentType: 'application/json', body: utf8('{"a":1}') }],
    'a multipart body cut off': [
      { contentType: 'multipart/form-data; boundary=b', body: utf8('--b\r\n\r\n1\r\n--b--\r\n') },
      { contentType: 'multipart/form-data; boundary=b', body: utf8('--b\r\n\r\n1\r\n') },
    ],
  };
  for (const [what, [one, other]] of Object.entries(pairs)) {
    it(what, async () => expect(await of(one)).not.toBe(await of(other)));
  }
});

describe('what does not', () => {
  const pairs: Record<string, readonly [Partial<FingerprintInput>, Partial<FingerprintInput>]> = {
    'the case of a method': [{ method: 'post' }, { method: 'POST' }],
    'a charset, and the case of a media type': [{ contentType: 'application/json' }, { contentType: 'Application/JSON; charset=UTF-8' }],
    'how a query spells a space': [{ query: 'a=x+y' }, { query: 'a=x%20y' }],
    'the boundary of a form, also quoted': [
      { contentType: 'multipart/form-data; boundary=b1', body: utf8('--b1\r\n\r\n1\r\n--b1\r\n\r\n2\r\n--b1--\r\n') },
      { contentType: 'multipart/form-data; boundary="b 2"', body: utf8('--b 2\r\n\r\n1\r\n--b 2\r\n\r\n2\r\n--b 2--\r\n') },
    ],
    'the boundary of an empty form': [
      { contentType: 'multipart/form-data; boundary=b1', body: utf8('--b1--\r\n') },
      { contentType: 'multipart/form-data; boundary=b2', body: utf8('--b2--\r\n') },
    ],
  };
  for (const [what, [one, other]] of Object.entries(pairs)) {
    it(what, async () => expect(await of(one)).toBe(await of(other)));
  }
});
