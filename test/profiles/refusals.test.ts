import { describe, expect, it } from 'vitest';
import type { Meaning } from '../../src/profiles/index.js';
import { refusalResponse, type RefusalCode } from '../../src/server/refusal.js';
import { heard, PROFILES } from './support.js';

/** Every refusal there is, and what a client must hear in it. */
const MEANINGS: Readonly<Record<RefusalCode, Meaning | undefined>> = {
  idempotency_key_missing: undefined,
  idempotency_key_invalid: undefined,
  idempotency_scope_missing: undefined,
  idempotency_unsupported: undefined,
  idempotency_request_too_large: undefined,
  idempotency_key_reused: 'key-reused',
  idempotency_in_progress: 'in-progress',
  idempotency_indeterminate: 'indeterminate',
  idempotency_result_unavailable: 'result-unavailable',
  idempotency_result_expired: 'result-unavailable',
  idempotency_key_expired: 'key-expired',
  idempotency_store_unavailable: undefined,
  handler_failed: undefined,
};

const CODES = Object.keys(MEANINGS) as RefusalCode[];

/** Verdicts on resending are beside the meaning. */
const VERDICTS: ReadonlySet<Meaning> = new Set(['should-retry', 'should-not-retry']);

describe.each(PROFILES)('the refusals of $name', profile => {
  const refusal = (code: RefusalCode): Response => refusalResponse(profile, { code, retryAfter: 1500, originalStatus: 201, operationRef: 'ref', detail: 'This time.' });

  it('57: no two are the same to a program', async () => {
    const bodies = await Promise.all(CODES.map(async code => `${refusal(code).status} ${(await refusal(code).text()).replaceAll(/"(?:detail|message|title|description)":"[^"]*"/g, '')}`));
    expect(new Set(bodies).size).toBe(CODES.length);
  });

  it('are heard as what they are, and as nothing else', async () => {
    for (const code of CODES) {
      const meanings = (await heard(profile, refusal(code))).filter(meaning => !VERDICTS.has(meaning));
      const { refusals } = profile;
      // 501 means the same to all who look at it; azure's "400, rejected" is of a key that clients of ours never send so.
      const known = code === 'idempotency_unsupported' && (refusals === 'problem' || refusals === 'azure') ? 'unprotected' : code === 'idempotency_key_invalid' && refusals === 'azure' ? 'key-reused' : MEANINGS[code];
      expect([code, meanings]).toEqual([code, known === undefined ? [] : [known]]);
    }
  });

  it('say in words what happened, when to come back, and are kept by no cache', async () => {
    for (const code of CODES) {
      const response = refusal(code);
      expect([response.headers.get('cache-control'), response.headers.get('retry-after'), response.status >= 400]).toEqual(['no-store', '2', true]);
      expect(response.headers.get('content-type')).toMatch(/^application\/(problem\+)?json$/);
      const text = await response.text();
      expect(JSON.parse(text)).toMatchObject({ original_status: 201 });
      if (!text.includes('already processed or in progress') && !text.includes('temporarily unavailable')) expect(text).toContain('This time. ');
    }
  });

  it('a verdict never asks to resend what cannot succeed, nor forbids what may', async () => {
    for (const code of CODES) {
      const verdicts = (await heard(profile, refusal(code))).filter(meaning => VERDICTS.has(meaning));
      const wants = ['idempotency_in_progress', 'idempotency_store_unavailable', 'handler_failed'].includes(code) ? 'should-retry' : 'should-not-retry';
      for (const verdict of verdicts) expect([code, verdict]).toEqual([code, wants]);
    }
  });
});
