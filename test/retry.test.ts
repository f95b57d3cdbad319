import { describe, expect, it } from 'vitest';
import { decide, defaultRetry, isAmbiguous, MIN_BACKOFF_MS, parseRetryAfter, verdictOf, type AnswerOutcome, type History, type Outcome } from '../src/retry.js';
import type { Meaning } from '../src/profiles/profile.js';

const NOW = Date.UTC(2026, 10, 1, 12, 0, 0);

const history = (changes: Partial<History> = {}): History => ({
  method: 'POST', conditional: false, retries: 0, waits: 0, conflictFor: 0, ambiguous: false, elsewhere: false,
  sawSuccess: false, caller: true, canRefresh: false, now: NOW, left: 60_000, ...changes,
});

const answer = (status: number, changes: Partial<Omit<AnswerOutcome, 'meanings'>> & { meanings?: Meaning[] } = {}): AnswerOutcome => ({
  kind: 'answer', status, whole: true, retryAfter: null, ownCode: false, unsafeNewKey: false, ...changes, meanings: new Set(changes.meanings ?? []),
});

const lost: Outcome = { kind: 'no-answer', sent: true };
const refused: Outcome = { kind: 'no-answer', sent: false };

const half = (): number => 0.5;
const choose = (outcome: Outcome, past: Partial<History> = {}): string => {
  const decision = decide(outcome, history(past), defaultRetry, half);
  return decision.action === 'reject' ? `reject:${decision.admitted ? (decision.stored ? 'stored' : 'answered') : 'not-admitted'}` : decision.action === 'park' ? `park:${decision.as}` : decision.action;
};

const dirty: Partial<History> = { ambiguous: true };

describe('decide', () => {
  it.each<[string, Outcome, clean: string, ambiguous: string]>([
    ['200', answer(200), 'settle', 'settle'],
    ['201', answer(201), 'settle', 'settle'],
    ['202', answer(202), 'settle', 'settle'],
    ['204', answer(204), 'settle', 'settle'],
    ['a visible 303', answer(303), 'settle', 'settle'],
    ['a cut-off 200', answer(200, { whole: false }), 'retry', 'retry'],
    ['a cut-off 400', answer(400, { whole: false }), 'retry', 'retry'],
    ['no answer', lost, 'retry', 'retry'],
    ['a refused connection', refused, 'retry', 'retry'],
    ['408', answer(408), 'retry', 'retry'],
    ['425', answer(425), 'retry', 'retry'],
    ['429', answer(429), 'retry', 'retry'],
    ['500', answer(500), 'retry', 'retry'],
    ['502', answer(502), 'retry', 'retry'],
    ['503', answer(503), 'retry', 'retry'],
    ['504', answer(504), 'retry', 'retry'],
    ['400', answer(400), 'reject:answered', 'inDoubt'],
    ['402', answer(402), 'reject:answered', 'inDoubt'],
    ['404', answer(404), 'reject:answered', 'inDoubt'],
    ['410', answer(410), 'reject:answered', 'inDoubt'],
    ['412', answer(412), 'reject:answered', 'inDoubt'],
    ['a bare 422', answer(422), 'reject:answered', 'inDoubt'],
    ['401', answer(401), 'reject:not-admitted', 'park:auth'],
    ['403', answer(403), 'reject:not-admitted', 'park:auth'],
    ['407', answer(407), 'reject:not-admitted', 'park:auth'],
    ['421', answer(421), 'reject:not-admitted', 'park:auth'],
    ['423', answer(423), 'reject:not-admitted', 'park:auth'],
    ['431', answer(431), 'reject:not-admitted', 'park:auth'],
    ['a stored 400', answer(400, { meanings: ['stored'] }), 'reject:stored', 'reject:stored'],
    ['a replayed 402', answer(402, { meanings: ['replayed'] }), 'reject:stored', 'reject:stored'],
    ['what is there already', answer(409, { meanings: ['already-done', 'replayed'], ownCode: true }), 'inDoubt', 'settle'],
    ['what is there already, and is what was asked for', answer(409, { meanings: ['already-done', 'replayed'], ownCode: true, accepted: 'succeeded' }), 'settle', 'settle'],
    ['a stored 500', answer(500, { meanings: ['stored'] }), 'inDoubt', 'inDoubt'],
    ['a replayed 503', answer(503, { meanings: ['replayed'] }), 'inDoubt', 'inDoubt'],
    ['409 in progress', answer(409, { meanings: ['in-progress'] }), 'wait', 'wait'],
    ['409 with Retry-After', answer(409, { retryAfter: '1' }), 'wait', 'wait'],
    ['409 with a code of its own', answer(409, { ownCode: true }), 'reject:answered', 'inDoubt'],
    ['409 with a code of its own and Retry-After', answer(409, { ownCode: true, retryAfter: '1' }), 'reject:answered', 'inDoubt'],
    ['a bare 409', answer(409), 'reject:answered', 'wait'],
    ['key reuse', answer(422, { meanings: ['key-reused'] }), 'inDoubt', 'inDoubt'],
    ['an indeterminate effect', answer(409, { meanings: ['indeterminate'] }), 'inDoubt', 'inDoubt'],
    ['an expired key', answer(412, { meanings: ['key-expired'] }), 'inDoubt', 'inDoubt'],
    ['a refusal that forbids a new key', answer(422, { unsafeNewKey: true }), 'inDoubt', 'inDoubt'],
    ['a 503 that will answer under this key only', answer(503, { unsafeNewKey: true }), 'retry', 'retry'],
    ['a 429 that forbids a new key', answer(429, { unsafeNewKey: true }), 'retry', 'retry'],
    ['an unavailable 201', answer(409, { meanings: ['result-unavailable'], originalStatus: 201 }), 'settle', 'settle'],
    ['an unavailable 402', answer(409, { meanings: ['result-unavailable'], originalStatus: 402 }), 'reject:stored', 'reject:stored'],
    ['an unavailable 500', answer(409, { meanings: ['result-unavailable'], originalStatus: 500 }), 'inDoubt', 'inDoubt'],
    ['an unavailable answer of unknown status', answer(409, { meanings: ['result-unavailable'] }), 'inDoubt', 'inDoubt'],
    ['an unprotected 400', answer(400, { meanings: ['unprotected'] }), 'reject:answered', 'inDoubt'],
    ['an unprotected 503', answer(503, { meanings: ['unprotected'] }), 'inDoubt', 'inDoubt'],
    ['an unprotected 200', answer(200, { meanings: ['unprotected'] }), 'settle', 'settle'],
    ['501', answer(501, { meanings: ['unprotected'] }), 'reject:answered', 'inDoubt'],
    ['an unrecorded 200', answer(200, { meanings: ['unrecorded'] }), 'settle', 'settle'],
    ['a 500 that asks not to retry', answer(500, { meanings: ['should-not-retry'] }), 'inDoubt', 'inDoubt'],
    ['a 429 that asks not to retry', answer(429, { meanings: ['should-not-retry'] }), 'giveUp', 'giveUp'],
    ['a 409 that asks to retry', answer(409, { meanings: ['should-retry'] }), 'retry', 'retry'],
    ['a 409 that asks not to retry', answer(409, { meanings: ['should-not-retry'] }), 'reject:answered', 'inDoubt'],
    ['301', answer(301), 'park:redirected', 'park:redirected'],
    ['302', answer(302), 'park:redirected', 'park:redirected'],
    ['307 to elsewhere', answer(307), 'park:redirected', 'park:redirected'],
    ['a hidden redirect', answer(0), 'park:redirected', 'park:redirected'],
    ['what accept calls succeeded', answer(404, { accepted: 'succeeded' }), 'settle', 'settle'],
    ['what accept calls rejected', answer(200, { accepted: 'rejected' }), 'reject:answered', 'inDoubt'],
    ['what accept calls a stored rejection', answer(200, { accepted: 'stored-rejection' }), 'reject:stored', 'reject:stored'],
    ['what accept wants to retry', answer(200, { accepted: 'retry' }), 'retry', 'retry'],
    ['what accept calls unauthorised', answer(200, { accepted: 'auth' }), 'reject:not-admitted', 'park:auth'],
  ])('%s: clean and behind an ambiguous attempt', (_, outcome, clean, ambiguous) => {
    expect([choose(outcome), choose(outcome, dirty)]).toEqual([clean, ambiguous]);
  });

  it.each(['stored', 'answered'] as const)('lets nobody but a person reject what began to succeed (%s refusal)', kind => {
    const outcome = answer(400, kind === 'stored' ? { meanings: ['stored'] } : {});
    expect(choose(outcome, { sawSuccess: true })).toBe('inDoubt');
  });

  it('parks a 401 that no caller waits for', () => expect(choose(answer(401), { caller: false })).toBe('park:auth'));
  it('asks for credentials once before a 401 counts', () => {
    expect(decide(answer(401), history({ canRefresh: true, ambiguous: true }), defaultRetry, half)).toMatchObject({ action: 'retry', delay: 0 });
    expect(choose(answer(403), { canRefresh: true })).toBe('reject:not-admitted');
  });

  it('takes a DELETE that finds nothing after a lost answer as done', () => {
    expect(decide(answer(404), history({ method: 'DELETE', ambiguous: true }), defaultRetry, half)).toEqual({ action: 'settle', reason: 'already-absent' });
    expect(choose(answer(404), { method: 'DELETE' })).toBe('reject:answered');
  });

  it('does not call a failed If-Match after a lost answer a conflict', () => {
    expect(decide(answer(412), history({ conditional: true, ambiguous: true }), defaultRetry, half)).toEqual({ action: 'inDoubt', reason: 'compare' });
  });

  it('waits on an unexplained 409 for a key that others may have, three times and conflictWait ms at least, then refuses', () => {
    const conflict = answer(409);
    expect(choose(conflict, { elsewhere: true })).toBe('wait');
    expect(choose(conflict, { elsewhere: true, waits: 9, conflictFor: 14_999 })).toBe('wait');
    expect(choose(conflict, { elsewhere: true, waits: 2, conflictFor: 20_000 })).toBe('wait');
    expect(choose(conflict, { elsewhere: true, waits: 3, conflictFor: 15_000 })).toBe('reject:answered');
    expect(choose(conflict, { ...dirty, waits: 3, conflictFor: 15_000 })).toBe('inDoubt');
  });

  it('does not count waiting as retrying', () => {
    expect(choose(answer(409, { meanings: ['in-progress'] }), { retries: 7, waits: 50 })).toBe('wait');
    expect(choose(answer(503), { retries: 7 })).toBe('giveUp');
    expect(choose(answer(503), { retries: 6 })).toBe('retry');
  });

  it('stops at once when the pause is longer than the caller waits, and says when it is due', () => {
    expect(decide(answer(503, { retryAfter: '30' }), history({ left: 20_000 }), defaultRetry, half)).toEqual({ action: 'giveUp', reason: 'server-error', delay: 30_000 });
  });

  it('backs off exponentially under full jitter, capped, never faster than the minimum', () => {
    const delays = (random: number): number[] => [0, 1, 2, 3, 4, 5, 6].map(retries => (decide(lost, history({ retries }), defaultRetry, () => random) as { delay: number }).delay);
    expect(delays(1)).toEqual([300, 600, 1200, 2400, 4800, 8000, 8000]);
    expect(delays(0.5)).toEqual([150, 300, 600, 1200, 2400, 4000, 4000]);
    expect(delays(0)).toEqual(Array(7).fill(MIN_BACKOFF_MS));
    const own = { ...defaultRetry, delay: () => 50_000, backoffLimit: 2_000, jitter: (delay: number) => delay / 4 };
    expect(decide(lost, history(), own, half)).toMatchObject({ delay: 500 });
  });
});

describe('isAmbiguous', () => {
  it.each<[string, Outcome, boolean]>([
    ['a lost answer', lost, true],
    ['a refused connection', refused, false],
    ['a cut-off answer', answer(200, { whole: false }), true],
    ['408', answer(408), true],
    ['425', answer(425), false],
    ['429', answer(429), false],
    ['500', answer(500), true],
    ['503', answer(503), true],
    ['501', answer(501, { meanings: ['unprotected'] }), false],
    ['409 in progress', answer(409, { meanings: ['in-progress'] }), true],
    ['a bare 409', answer(409), false],
    ['401', answer(401), false],
    ['400', answer(400), false],
  ])('%s', (_, outcome, expected) => expect(isAmbiguous(outcome, verdictOf(outcome, history({ elsewhere: true })))).toBe(expected));
});

describe('parseRetryAfter', () => {
  const date = (ms: number): string => new Date(NOW + ms).toUTCString();
  it.each<[string | null, number | undefined]>([
    ['3', 3_000], ['0', 0], ['120', 120_000], [date(5_000), 5_000], [date(-5_000), 0], [date(0), 0],
    ['-5', undefined], ['1.5', undefined], ['+3', undefined], ['120junk', undefined], ['', undefined], [' 3', undefined], ['garbage', undefined], ['NaN', undefined],
    ['1e3', undefined], ['0x10', undefined], ['3, 4', undefined], ['Sun, 06 Nov 94 08:49:37 GMT', undefined], ['Sunday, 06-Nov-94 08:49:37 GMT', undefined],
    ['2026-11-01T12:00:05Z', undefined], ['Sun, 99 Nov 2026 08:49:37 GMT', undefined], [null, undefined],
  ])('C30: reads %j as %j ms', (value, expected) => expect(parseRetryAfter(value, NOW)).toBe(expected));

  it('C30: a date that is past, or "0", still waits the minimum; a malformed one backs off', () => {
    const delay = (retryAfter: string): number => (decide(answer(503, { retryAfter }), history(), defaultRetry, () => 1) as { delay: number }).delay;
    expect([delay(date(-60_000)), delay('0'), delay('-5'), delay('1.5'), delay('a, b')]).toEqual([100, 100, 300, 300, 300]);
  });

  it.each(['2200000', '9999999999', '99999999999999999999', new Date(Date.UTC(9999, 0, 1)).toUTCString()])('C31: caps %j at maxRetryAfter', retryAfter => {
    expect(decide(answer(503, { retryAfter }), history({ left: 120_000 }), defaultRetry, half)).toEqual({ action: 'retry', reason: 'server-error', delay: 60_000 });
  });
});
