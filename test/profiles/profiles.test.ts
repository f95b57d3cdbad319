import { describe, expect, it } from 'vitest';
import { adyen, azure, generic, gocardless, ietf, paypal, square, stripe, type Meaning, type Profile } from '../../src/profiles/index.js';
import { hasOwnCode } from '../../src/profiles/profile.js';
import { bePatient } from '../support/patience.js';
import { gate, heard, keyOf, PROFILES, read, serverOf } from './support.js';

bePatient();

/** Words of a dialect beside the meaning itself: its verdict on resending. */
const WAIT: Partial<Record<string, Meaning>> = { stripe: 'should-retry', adyen: 'should-retry' };
const STOP: Partial<Record<string, Meaning>> = { stripe: 'should-not-retry', adyen: 'should-not-retry' };

const said = (verdicts: Partial<Record<string, Meaning>>, { refusals }: Profile, ...meanings: Meaning[]): Meaning[] =>
  [...meanings, ...[verdicts[refusals]].filter(verdict => verdict !== undefined)].sort();

/** What tells a first answer, and a repeat of it, in each style. */
const FIRST: Partial<Record<string, Meaning[]>> = { problem: ['stored'] };
const REPEAT: Partial<Record<string, Meaning[]>> = { problem: ['replayed', 'stored'], stripe: ['replayed'], gocardless: ['already-done', 'replayed'] };

describe('a client hears what a server of the same dialect says', () => {
  describe.each(PROFILES)('$name', profile => {
    it('stored, replayed, in progress', async () => {
      const { opened, open } = gate();
      const server = serverOf(profile, async (_request, { key }) => {
        if (key === keyOf('slow')) await opened;
        return Response.json({ charges: { id: 'CH1' } }, { status: 201 });
      });
      expect(await heard(profile, await server.send({ key: keyOf('k') }))).toEqual(FIRST[profile.refusals] ?? []);
      expect(await heard(profile, await server.send({ key: keyOf('k') }))).toEqual(REPEAT[profile.refusals] ?? []);
      const slow = server.send({ key: keyOf('slow') });
      await expect.poll(() => server.runs).toBe(2);
      const refusal = await server.send({ key: keyOf('slow') });
      expect([refusal.status, Number(refusal.headers.get('retry-after'))]).toEqual([409, 5]);
      expect(await heard(profile, refusal)).toEqual(said(WAIT, profile, 'in-progress'));
      open();
      await slow;
    });

    it('key reused, where bodies are compared', async () => {
      const server = serverOf(profile);
      await server.send({ key: keyOf('k') });
      const other = await server.send({ key: keyOf('k'), json: { amount: 1 } });
      expect(await heard(profile, other)).toEqual(profile.comparesBodies ? said(STOP, profile, 'key-reused') : ['already-done', 'replayed']);
      expect(server.runs).toBe(1);
    });

    it('result unavailable, result expired, key expired', async () => {
      const large = serverOf(profile, undefined, { maxAnswerBytes: 1 });
      await large.send({ key: keyOf('k') });
      expect(await heard(profile, await large.send({ key: keyOf('k') }))).toEqual(said(STOP, profile, 'result-unavailable'));
      const server = serverOf(profile, undefined, { retention: 1000, keyRetention: 2000, onExpired: 'refuse' });
      await server.send({ key: keyOf('k') });
      await server.clock.advance(1001);
      expect(await heard(profile, await server.send({ key: keyOf('k') }))).toEqual(said(STOP, profile, 'result-unavailable'));
      await server.clock.advance(1000);
      expect(await heard(profile, await server.send({ key: keyOf('k') }))).toEqual(said(STOP, profile, 'key-expired'));
      expect(server.runs).toBe(1);
    });

    it('indeterminate', async () => {
      const server = serverOf({ ...profile, stores: 'deterministic' }, async (_request, context) => {
        await context.effectStarted();
        throw new Error('lost');
      });
      await server.send({ key: keyOf('k') });
      expect(await heard(profile, await server.send({ key: keyOf('k') }))).toEqual(said(STOP, profile, 'indeterminate'));
    });

    it('nothing where there is no key, or one that cannot be read, but a refusal that runs nothing', async () => {
      const server = serverOf(profile, undefined, { required: true });
      const missing = await server.send({});
      expect([missing.status, (await heard(profile, missing)).filter(meaning => meaning !== 'should-not-retry')]).toEqual([400, []]);
      expect((await server.send({ key: 'x'.repeat(profile.maxLength + 1) })).status).toBe(400);
      expect(server.runs).toBe(0);
    });
  });
});

describe('every dialect', () => {
  it.each(PROFILES)('$name says what it is: where the key travels, how long and for how long', profile => {
    expect([profile.header, profile.bodyField].filter(Boolean)).toHaveLength(1);
    expect(profile.keyFormat.test(keyOf('any'))).toBe(true);
    expect(profile.maxLength).toBeGreaterThanOrEqual(36);
    expect(profile.keyWindow).toBeGreaterThanOrEqual(300_000);
    expect(profile.replays === 'conflict' ? typeof profile.resourceOf : 'function').toBe('function');
  });

  it('has a name of its own', () => {
    expect(new Set(PROFILES.map(({ name }) => name)).size).toBe(PROFILES.length);
  });

  it('the facts that differ', () => {
    const facts = Object.fromEntries(PROFILES.map(profile => [profile.name, [profile.maxLength, profile.keyWindow / 3_600_000, profile.stores, profile.replays ?? 'verbatim', profile.expiredKey]]));
    expect(facts).toEqual({
      ietf: [255, 24, 'deterministic', 'verbatim', 'fresh'],
      generic: [255, 24, 'deterministic', 'verbatim', 'fresh'],
      stripe: [255, 24, 'all', 'verbatim', 'fresh'],
      'stripe-v2': [255, 720, 'success', 'latest', 'fresh'],
      adyen: [64, 168, 'deterministic', 'verbatim', 'fresh'],
      paypal: [108, 3, 'deterministic', 'latest', 'fresh'],
      square: [45, 24, 'success', 'verbatim', 'fresh'],
      gocardless: [128, 24, 'success', 'conflict', 'fresh'],
      azure: [36, 5 / 60, 'deterministic', 'verbatim', 'refuse'],
    });
  });
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

describe('stripe', () => {
  it('is v1 as it stands, and any version when it is called', () => {
    expect([stripe.name, stripe({ version: 1 }).name, stripe({ version: 2 }).name]).toEqual(['stripe', 'stripe', 'stripe-v2']);
    expect(Object.entries(stripe)).toEqual(Object.entries(stripe({ version: 1 })));
    expect(stripe({ version: 2 }).methods).toEqual(['POST', 'DELETE']);
  });

  it('reads a stored refusal only where execution has begun, and in v2 nowhere', () => {
    expect([read(stripe, 402), read(stripe, 400), read(stripe({ version: 2 }), 402)]).toEqual([['stored'], [], []]);
  });
});

describe('the other dialects read their own error bodies', () => {
  it('adyen: 704 by its header', () => {
    const busy = { status: 409, errorCode: '704', message: 'request already processed or in progress', errorType: 'validation' };
    for (const status of [409, 422]) {
      expect(read(adyen, status, busy, { 'transient-error': 'true' })).toEqual(['in-progress', 'should-retry']);
      expect(read(adyen, status, busy)).toEqual(['indeterminate']);
      expect(read(adyen, status, busy, { 'transient-error': 'false' })).toEqual(['indeterminate', 'should-not-retry']);
    }
    expect(read(adyen, 422, { errorCode: '167' })).toEqual([]);
    expect(read(adyen, 503)).toEqual([]);
  });

  it('paypal: the issue in its details', () => {
    const issue = (name: string): object => ({ name: 'RESOURCE_CONFLICT', details: [{ issue: name, description: '…' }] });
    expect(read(paypal, 409, issue('PREVIOUS_REQUEST_IN_PROGRESS'))).toEqual(['in-progress']);
    expect(read(paypal, 422, issue('DUPLICATE_REQUEST_ID'))).toEqual(['key-reused']);
    expect(read(paypal, 422, issue('PAYPAL_REQUEST_ID_PREVIOUSLY_USED'))).toEqual(['key-reused']);
    expect(read(paypal, 422, issue('INSTRUMENT_DECLINED'))).toEqual([]);
  });

  it('square: the code in its errors', () => {
    expect(read(square, 400, { errors: [{ category: 'INVALID_REQUEST_ERROR', code: 'IDEMPOTENCY_KEY_REUSED' }] })).toEqual(['key-reused']);
    expect(read(square, 400, { errors: [{ category: 'PAYMENT_METHOD_ERROR', code: 'CARD_DECLINED' }] })).toEqual([]);
  });

  it('gocardless: the reason in the errors of its error', () => {
    const conflict = { error: { type: 'invalid_state', code: 409, errors: [{ reason: 'idempotent_creation_conflict', links: { conflicting_resource_id: 'PM1' } }] } };
    expect(read(gocardless, 409, conflict)).toEqual(['already-done', 'replayed']);
    expect(read(gocardless, 409, { error: { type: 'invalid_state', errors: [{ reason: 'mandate_is_inactive' }] } })).toEqual([]);
  });

  it('gocardless: where the resource is, by an id that cannot lead elsewhere', () => {
    const conflict = (id: unknown): object => ({ error: { errors: [{ links: { conflicting_resource_id: id } }] } });
    const request = new Request('https://api.test/payments/?a=1', { method: 'POST', body: '{}', headers: { authorization: 'Bearer x', 'idempotency-key': 'k', 'content-type': 'application/json' } });
    const asked = gocardless.resourceOf?.(conflict('PM1'), request);
    expect([asked?.method, asked?.url, asked?.headers.get('authorization'), asked?.headers.has('idempotency-key'), asked?.headers.has('content-type')])
      .toEqual(['GET', 'https://api.test/payments/PM1', 'Bearer x', false, false]);
    for (const id of ['..', '../x', '//evil.example', '', 7, undefined]) expect(gocardless.resourceOf?.(conflict(id), request)).toBeUndefined();
    for (const json of [null, undefined, 'text', { error: null }, { error: { errors: [null] } }]) expect(gocardless.resourceOf?.(json, request)).toBeUndefined();
  });

  it('azure: accepted and rejected', () => {
    const result = (value: string): Record<string, string> => ({ 'repeatability-result': value });
    expect(read(azure, 201, undefined, result('accepted'))).toEqual([]);
    expect(read(azure, 404, undefined, result('accepted'))).toEqual(['stored']);
    expect(read(azure, 409, { error: { code: 'AnyCode' } }, result('accepted'))).toEqual(['in-progress']);
    expect(read(azure, 400, undefined, result('rejected'))).toEqual(['key-reused']);
    expect(read(azure, 412, undefined, result('rejected'))).toEqual(['key-expired']);
    expect(read(azure, 412)).toEqual([]);
    expect(read(azure, 503, undefined, result('accepted'))).toEqual([]);
    expect(read(azure, 501)).toEqual(['unprotected']);
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
  const coded = [{ code: 'x' }, { type: 'https://a.example/b' }, { error: { type: 'x' } }, { errors: [{ code: 'x' }] }, { details: [{ issue: 'x' }] }, { error: { errors: [{ reason: 'x' }] } }];
  expect(coded.map(hasOwnCode)).toEqual(coded.map(() => true));
  expect([undefined, null, {}, { type: 'about:blank' }, { message: 'x' }, 'text'].map(hasOwnCode)).toEqual([false, false, false, false, false, false]);
});

it('a body that is nested without end says nothing, and breaks nothing', () => {
  let json: unknown = { code: 'idempotency_in_progress' };
  for (let depth = 0; depth < 100_000; depth += 1) json = { error: json };
  expect(read(ietf, 409, json)).toEqual([]);
});
