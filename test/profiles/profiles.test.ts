import { describe, expect, it } from 'vitest';
import { generic, ietf, stripe, type Meaning, type Profile } from '../../src/profiles/index.js';
import { meaningsOf, hasOwnCode } from '../../src/profiles/profile.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { endpointOf, gate, LEASE, type Stage } from '../server/conformance/stage.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';

bePatient();

const read = (profile: Profile, status: number, json?: unknown, headers: Record<string, string> = {}): Meaning[] =>
  [...meaningsOf(profile, { status, headers: new Headers(headers), json })].sort();

const heard = async (profile: Profile, response: Response): Promise<Meaning[]> => {
  const text = await response.text();
  return read(profile, response.status, text.startsWith('{') ? JSON.parse(text) : undefined, Object.fromEntries(response.headers));
};

const stageOf = (): Stage => {
  const clock = manualClock();
  return { clock, store: memoryDedupStore({ clock }) };
};

describe('a client hears what a server of the same dialect says', () => {
  for (const profile of [ietf, stripe, generic]) {
    const marked = profile.refusals === 'problem';
    const inTheSense = (...meanings: Meaning[]): Meaning[] => meanings.sort();

    it(`${profile.name}: stored, replayed, reused, in progress`, async () => {
      const { opened, open } = gate();
      const endpoint = endpointOf(stageOf(), async (_request, { key }) => (key === 'slow' ? opened.then(() => new Response('ok')) : new Response('ok')), { profile });
      expect(await heard(profile, await endpoint.send({ key: 'k' }))).toEqual(marked ? ['stored'] : []);
      expect(await heard(profile, await endpoint.send({ key: 'k' }))).toEqual(marked ? inTheSense('replayed', 'stored') : ['replayed']);
      expect(await heard(profile, await endpoint.send({ key: 'k', body: '{}' }))).toEqual(marked ? ['key-reused'] : inTheSense('key-reused', 'should-not-retry'));
      const slow = endpoint.send({ key: 'slow' });
      await expect.poll(() => endpoint.runs).toBe(2);
      expect(await heard(profile, await endpoint.send({ key: 'slow' }))).toEqual(marked ? ['in-progress'] : inTheSense('in-progress', 'should-retry'));
      open();
      await slow;
    });

    it(`${profile.name}: indeterminate, result expired, result unavailable, key expired`, async () => {
      const stage = stageOf();
      const endpoint = endpointOf(stage, undefined, { profile, retention: LEASE, keyRetention: 2 * LEASE, onExpired: 'refuse' });
      const refusal = marked ? [] : (['should-not-retry'] as const);
      const large = endpointOf(stage, undefined, { profile, maxAnswerBytes: 1 });
      await large.send({ key: 'large' });
      expect(await heard(profile, await large.send({ key: 'large' }))).toEqual(inTheSense('result-unavailable', ...refusal));
      await endpoint.send({ key: 'k' });
      await stage.clock.advance(LEASE + 1);
      expect(await heard(profile, await endpoint.send({ key: 'k' }))).toEqual(inTheSense('result-unavailable', ...refusal));
      await stage.clock.advance(LEASE);
      expect(await heard(profile, await endpoint.send({ key: 'k' }))).toEqual(inTheSense('key-expired', ...refusal));
      const failing = endpointOf(stage, async (_request, context) => {
        await context.effectStarted();
        throw Object.assign(new Error('lost'), { code: 'OTHER' });
      }, { profile: { ...profile, stores: 'deterministic' } });
      await failing.send({ key: 'doubt' });
      expect(await heard(profile, await failing.send({ key: 'doubt' }))).toEqual(inTheSense('indeterminate', ...refusal));
    });
  }
});

describe('ietf reads', () => {
  it('the draft’s titles where a server gives no code', () => {
    expect(read(ietf, 409, { title: 'A request is outstanding for this Idempotency-Key' })).toEqual(['in-progress']);
    expect(read(ietf, 422, { title: 'Idempotency-Key is already used' })).toEqual(['key-reused']);
  });

  it('a type by its last segment, whatever the scheme', () => {
    for (const type of ['urn:x:idempotency_in_progress', 'https://api.example/problems/idempotency_in_progress', 'https://api.example/errors#idempotency_in_progress']) {
      expect(read(ietf, 409, { type })).toEqual(['in-progress']);
    }
  });

  it('nothing into a bare 409 or 422, or into another code', () => {
    expect(read(ietf, 409)).toEqual([]);
    expect(read(ietf, 422, { code: 'amount_invalid' })).toEqual([]);
    expect(read(ietf, 409, { code: 'idempotency_in_progress_report' })).toEqual([]);
  });

  it('an endpoint without protection', () => {
    expect(read(ietf, 201, undefined, { 'idempotency-status': 'none' })).toEqual(['unprotected']);
    expect(read(ietf, 201, undefined, { 'idempotency-status': 'ignored' })).toEqual(['unprotected']);
    expect(read(ietf, 501)).toEqual(['unprotected']);
    expect(read(ietf, 201, undefined, { 'idempotency-status': 'unrecorded' })).toEqual(['unrecorded']);
  });

  it('the replay markers in use', () => {
    for (const name of ['Idempotent-Replayed', 'Idempotency-Replayed']) expect(read(ietf, 201, undefined, { [name]: 'true' })).toEqual(['replayed']);
    expect(read(ietf, 201, undefined, { 'Idempotent-Replayed': 'false' })).toEqual([]);
  });
});

describe('stripe reads', () => {
  it('its own error body', () => {
    expect(read(stripe, 400, { error: { type: 'idempotency_error' } })).toEqual(['key-reused']);
    expect(read(stripe, 409, { error: { code: 'idempotency_key_in_use' } })).toEqual(['in-progress']);
    expect(read(stripe, 400, { error: { type: 'card_error' } })).toEqual([]);
  });

  it('its verdict header', () => {
    expect(read(stripe, 500, undefined, { 'Stripe-Should-Retry': 'false' })).toEqual(['should-not-retry']);
    expect(read(stripe, 503, undefined, { 'Stripe-Should-Retry': 'true' })).toEqual(['should-retry']);
  });
});

describe('generic reads', () => {
  it('the other spellings of markers and codes', () => {
    expect(read(generic, 201, undefined, { 'X-Idempotent-Replayed': 'true' })).toEqual(['replayed']);
    expect(read(generic, 409, { code: 'REQUEST_IN_PROGRESS' })).toEqual(['in-progress']);
    expect(read(generic, 400, { error: { code: 'IDEMPOTENCY_KEY_MISMATCH' } })).toEqual(['key-reused']);
  });
});

it('a code of its own is told from none', () => {
  expect([{ code: 'x' }, { type: 'https://a.example/b' }, { error: { type: 'x' } }].map(hasOwnCode)).toEqual([true, true, true]);
  expect([undefined, null, {}, { type: 'about:blank' }, { message: 'x' }, 'text'].map(hasOwnCode)).toEqual([false, false, false, false, false, false]);
});
