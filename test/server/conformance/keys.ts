import { expect } from 'vitest';
import { codeOf, endpointOf, isReplay, type Conformance } from './stage.js';

const INVALID: Record<string, string> = {
  'two values': 'a, b',
  empty: '',
  'empty string': '""',
  'too long': 'x'.repeat(256),
  'too long in quotes': `"${'x'.repeat(256)}"`,
  'control character': 'a\u0001b',
  'not ASCII': 'schlüssel',
  'unterminated quote': '"abc',
  'bad escape': '"a\\bc"',
  parameters: '"abc";v=1',
  'bare parameters': 'abc;v=1',
  'list of strings': '"a", "b"',
  'space inside a bare value': 'a b',
};

export const keys: readonly Conformance[] = [
  {
    name: '12: a quoted and a bare key are the same key',
    async run(stage) {
      const endpoint = endpointOf(stage);
      await endpoint.send({ key: '"K"' });
      expect(isReplay(await endpoint.send({ key: 'K' }))).toBe(true);
      await endpoint.send({ key: '"a\\"b\\\\c"' });
      expect(isReplay(await endpoint.send({ key: '"a\\"b\\\\c"' }))).toBe(true);
      expect(endpoint.runs).toBe(2);
    },
  },
  ...Object.entries(INVALID).map(([what, key]): Conformance => ({
    name: `13, 14: a key that cannot be one key is refused, never ignored (${what})`,
    async run(stage) {
      const endpoint = endpointOf(stage);
      const response = await endpoint.send({ key });
      expect([response.status, await codeOf(response), endpoint.runs]).toEqual([400, 'idempotency_key_invalid', 0]);
    },
  })),
  {
    name: '13: two header lines are refused',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const headers = new Headers([['idempotency-key', 'a'], ['idempotency-key', 'b'], ['x-tenant', 'acme']]);
      const response = await endpoint.dedup.handle(new Request('https://shop.example/', { method: 'POST', headers }), () => new Response(), { name: 'charge' });
      expect(response.status).toBe(400);
    },
  },
  {
    name: '15: short keys and keys of 255 characters are accepted',
    async run(stage) {
      const endpoint = endpointOf(stage);
      for (const key of ['KG5LxwFBepaKHyUD', 'k', 'x'.repeat(255)]) expect((await endpoint.send({ key })).status).toBe(201);
    },
  },
  {
    name: '16, 17: keys of any characters and either case stay apart, per endpoint too',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const odd = ['a', 'A', 'a:b', 'a/b', 'a%20b', 'a*', '*', 'a\\nb', '"\'; DROP TABLE keys;--"', "a'b", '1:a', 'charge:a'];
      for (const key of odd) expect((await endpoint.send({ key })).headers.get('idempotency-status')).toBe('stored');
      expect((await endpoint.send({ key: 'a', name: 'a' })).headers.get('idempotency-status')).toBe('stored');
      expect(endpoint.runs).toBe(odd.length + 1);
    },
  },
  {
    name: 'a strict endpoint takes quoted keys only',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { strict: true });
      expect([(await endpoint.send({ key: 'K' })).status, (await endpoint.send({ key: '"K"' })).status]).toEqual([400, 201]);
    },
  },
];
