import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createDedup, fingerprint, hmacFingerprint, type DedupOptions, type FingerprintInput } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';

const SECRET = 'a secret of thirty-two bytes, say';
const OTHER = 'another secret of more than that.';

const inputOf = (body: string): FingerprintInput => ({ method: 'POST', target: '/charges', query: '', contentType: 'application/json', body: new TextEncoder().encode(body) });

describe('a fingerprint with a secret', () => {
  it('is the HMAC-SHA-256 of the fingerprint, and names rule, algorithm and secret', async () => {
    const input = inputOf('{"amount":4200}');
    const hash = (text: string): string => createHmac('sha256', SECRET).update(text).digest('hex');
    const id = hash('samekey: which secret is this?').slice(0, 8);
    expect(await hmacFingerprint(SECRET)(input)).toBe(`v1:hmac-sha256:${id}:${hash(await fingerprint(input))}`);
    expect(await hmacFingerprint(new TextEncoder().encode(SECRET))(input)).toBe(await hmacFingerprint(SECRET)(input));
  });

  it('says the same of the same request, and something else of another one', async () => {
    const of = hmacFingerprint(SECRET);
    expect(await of(inputOf('{"a":1,"b":2}'))).toBe(await of(inputOf('{"b":2, "a":1}')));
    expect(await of(inputOf('{"a":1}'))).not.toBe(await of(inputOf('{"a":2}')));
  });

  it('cannot be had by trying what a body may be, as a plain one can', async () => {
    const guesses = Array.from({ length: 100 }, (_, amount) => inputOf(`{"amount":${amount}}`));
    const plain = new Set(await Promise.all(guesses.map(fingerprint)));
    const foreign = new Set(await Promise.all(guesses.map(hmacFingerprint(OTHER))));
    const stored = await hmacFingerprint(SECRET)(inputOf('{"amount":42}'));
    const hashOf = (value: string): string => value.slice(value.lastIndexOf(':') + 1);
    for (const guess of [...plain, ...foreign]) expect(hashOf(guess)).not.toBe(hashOf(stored));
  });

  it('goes over a rule of one’s own, whose name it keeps', async () => {
    const ignoringAll = hmacFingerprint(SECRET, ({ method }) => `v7:${method}`);
    expect(await ignoringAll(inputOf('{"a":1}'))).toMatch(/^v7:hmac-sha256:[\da-f]{8}:[\da-f]{64}$/);
    expect(await ignoringAll(inputOf('{"a":1}'))).toBe(await ignoringAll(inputOf('{"a":2}')));
    expect(await hmacFingerprint(SECRET, () => 'no name')(inputOf('{}'))).toMatch(/^own:hmac-sha256:/);
  });

  it('wants a secret that cannot be guessed', () => {
    for (const secret of ['', 'short', new Uint8Array(15)]) expect(() => hmacFingerprint(secret)).toThrow(/The secret has \d+ bytes; at least 16 random ones/);
  });
});

describe('a table whose fingerprints change their secret', () => {
  const store = () => memoryDedupStore({ clock: manualClock() });

  const send = async (options: Pick<DedupOptions, 'store' | 'fingerprint'>, amount: number): Promise<number> => {
    const dedup = createDedup({ ...options, scope: () => 'acme' });
    const request = new Request('https://api.test/charges', { method: 'POST', headers: { 'idempotency-key': 'k', 'content-type': 'application/json' }, body: JSON.stringify({ amount }) });
    return (await dedup.handle(request, () => new Response(null, { status: 201 }), { name: 'charge' })).status;
  };

  it('tells reuse under one secret', async () => {
    const table = { store: store(), fingerprint: hmacFingerprint(SECRET) };
    expect([await send(table, 1), await send(table, 1), await send(table, 2)]).toEqual([201, 201, 422]);
  });

  it('turns no honest retry into reuse under the next one, nor when the secret is new', async () => {
    const rotated = store();
    expect([await send({ store: rotated, fingerprint: hmacFingerprint(SECRET) }, 1), await send({ store: rotated, fingerprint: hmacFingerprint(OTHER) }, 1)]).toEqual([201, 201]);
    const upgraded = store();
    expect([await send({ store: upgraded }, 1), await send({ store: upgraded, fingerprint: hmacFingerprint(SECRET) }, 1)]).toEqual([201, 201]);
  });
});
