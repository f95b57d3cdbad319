import { expect } from 'vitest';
import { codeOf, endpointOf, gate, isReplay, type Conformance, type Sent } from './stage.js';

const form = (build: (data: FormData) => void): FormData => {
  const data = new FormData();
  build(data);
  return data;
};

const photo = (data: FormData): void => {
  data.append('title', 'cat');
  data.append('tag', 'a');
  data.append('tag', 'b');
  data.append('file', new Blob([new Uint8Array([1, 2, 255])], { type: 'image/png' }), 'cat.png');
};

/** Requests that ask for something else than the first. Each is refused with 422 under its key. */
const OTHERS: Record<string, readonly [Sent, Sent]> = {
  '18: another JSON value': [{ body: '{"amount":1}' }, { body: '{"amount":2}' }],
  '19: another path': [{ path: '/v1/charges' }, { path: '/v1/refunds' }],
  '20, C83: another query value': [{ path: '/t?to=a' }, { path: '/t?to=b' }],
  'C83: queries that look alike when joined': [{ path: '/t?a=&a=b&c=' }, { path: '/t?a=&a=&b%26c=' }],
  'C83: a colon that moves from path to query': [{ path: '/a:b?c' }, { path: '/a?b:c' }],
  'C83: another order of equal query names': [{ path: '/t?a=1&a=2' }, { path: '/t?a=2&a=1' }],
  '21: another method': [{ method: 'POST' }, { method: 'PATCH' }],
  'C83: another media type': [{ body: '{}', type: 'application/json' }, { body: '{}', type: 'text/plain' }],
  '24: two bodies that are not UTF-8': [{ body: new Uint8Array([0xff, 0x01]) }, { body: new Uint8Array([0xfe, 0x01]) }],
  '27: null and absent': [{ body: '{"a":null}' }, { body: '{}' }],
  'C80: another order in an array': [{ body: '[1,2]' }, { body: '[2,1]' }],
  'C80: a member name twice is not the same as once': [{ body: '{"a":1,"a":2}' }, { body: '{"a":2}' }],
  'C81: integers that a double cannot tell apart': [{ body: '9007199254740993' }, { body: '9007199254740992' }],
  'C81: composed and decomposed é': [{ body: '"\u00e9"' }, { body: '"e\u0301"' }],
  'C35: another byte in a file': [
    { body: form(data => data.append('file', new Blob(['a']), 'f')) },
    { body: form(data => data.append('file', new Blob(['b']), 'f')) },
  ],
  'C35: another file name': [
    { body: form(data => data.append('file', new Blob(['a']), 'f')) },
    { body: form(data => data.append('file', new Blob(['a']), 'g')) },
  ],
  'C35: another order of equal field names': [
    { body: form(data => (data.append('tag', 'a'), data.append('tag', 'b'))) },
    { body: form(data => (data.append('tag', 'b'), data.append('tag', 'a'))) },
  ],
};

/** Requests that ask for the same thing. Each is answered with a replay. */
const SAME: Record<string, readonly [Sent, Sent]> = {
  '22, C80: other member order and white space': [{ body: '{"a":1,"b":{"c":2,"d":3}}' }, { body: ' { "b" : {"d":3,\n"c":2}, "a":1 } ' }],
  '23, C35: the same form with another boundary': [{ body: form(photo) }, { body: form(photo) }],
  '27: an empty body and none': [{ body: '' }, { body: null, headers: { 'content-type': 'application/json' } }],
  'C81: 1, 1.0 and 1e0': [{ body: '[1,1]' }, { body: '[1.0,1e0]' }],
  'C83: another order of different query names': [{ path: '/t?a=1&b=2' }, { path: '/t?b=2&a=1' }],
  'C83: a charset': [{ type: 'application/json' }, { type: 'application/json; charset=utf-8' }],
  'escaped and plain characters': [{ body: '"\\u00e9"' }, { body: '"\u00e9"' }],
};

export const fingerprints: readonly Conformance[] = [
  ...Object.entries(OTHERS).map(([what, [first, other]]): Conformance => ({
    name: `${what} under the same key is refused, and the first keeps its answer`,
    async run(stage) {
      const endpoint = endpointOf(stage);
      await endpoint.send({ key: 'k', ...first });
      const refused = await endpoint.send({ key: 'k', ...other });
      expect([refused.status, await codeOf(refused), refused.headers.has('retry-after')]).toEqual([422, 'idempotency_key_reused', false]);
      expect([isReplay(await endpoint.send({ key: 'k', ...first })), endpoint.runs]).toEqual([true, 1]);
    },
  })),
  ...Object.entries(SAME).map(([what, [first, again]]): Conformance => ({
    name: `${what} is the same request`,
    async run(stage) {
      const endpoint = endpointOf(stage);
      await endpoint.send({ key: 'k', ...first });
      expect([isReplay(await endpoint.send({ key: 'k', ...again })), endpoint.runs]).toEqual([true, 1]);
    },
  })),
  {
    name: '25, C79: another request under a key in progress gets 422 at once, the same one 409 with Retry-After',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async () => opened.then(() => new Response('done')));
      const first = endpoint.send({ key: 'k' });
      await expect.poll(() => endpoint.runs).toBe(1);
      const other = await endpoint.send({ key: 'k', body: '{"amount":1}' });
      const same = await endpoint.send({ key: 'k' });
      expect([other.status, other.headers.get('retry-after')]).toEqual([422, null]);
      expect(same.status).toBe(409);
      expect(Number(same.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      open();
      expect((await first).status).toBe(200);
      expect(endpoint.runs).toBe(1);
    },
  },
  {
    name: '26: a new key with the same body runs again',
    async run(stage) {
      const endpoint = endpointOf(stage);
      await endpoint.send({ key: 'k1' });
      expect(isReplay(await endpoint.send({ key: 'k2' }))).toBe(false);
      expect(endpoint.runs).toBe(2);
    },
  },
  {
    name: '45: a corrected body after a stored refusal is told that a new key is safe',
    async run(stage) {
      const endpoint = endpointOf(stage, () => Response.json({ error: 'amount' }, { status: 400 }));
      const first = await endpoint.send({ key: 'k', body: '{"amount":-1}' });
      const again = await endpoint.send({ key: 'k', body: '{"amount":-1}' });
      expect([first.status, again.status, isReplay(again), endpoint.runs]).toEqual([400, 400, true, 1]);
      const corrected = await endpoint.send({ key: 'k', body: '{"amount":1}' });
      expect(corrected.status).toBe(422);
      expect(await corrected.json()).toMatchObject({ code: 'idempotency_key_reused', safe_new_key: true });
    },
  },
  {
    name: 'a fingerprint of the server’s own may ignore a field',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { fingerprint: ({ method, target }) => `own:${method}${target}` });
      await endpoint.send({ key: 'k', body: '{"sentAt":1}' });
      expect(isReplay(await endpoint.send({ key: 'k', body: '{"sentAt":2}' }))).toBe(true);
    },
  },
];
