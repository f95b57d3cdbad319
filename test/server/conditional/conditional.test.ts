import { describe, expect, test } from 'vitest';
import { conditional } from '../../../src/server/conditional/index.js';

const ask = (method: string, headers: Record<string, string>, current?: number, required = false): Response | undefined =>
  conditional(new Request('https://api.test/orders/1', { method, headers }), { current, required });

const statusOf = (...args: Parameters<typeof ask>): number | undefined => ask(...args)?.status;

describe('a write', () => {
  test.each([
    [{}, 7, undefined],
    [{}, undefined, undefined],
    [{ 'if-match': '"7"' }, 7, undefined],
    [{ 'if-match': '"6", "7"' }, 7, undefined],
    [{ 'if-match': '*' }, 7, undefined],
    [{ 'if-match': '"6"' }, 7, 412],
    [{ 'if-match': 'W/"7"' }, 7, 412],
    [{ 'if-match': '"7"' }, undefined, 412],
    [{ 'if-match': '*' }, undefined, 412],
    [{ 'if-none-match': '*' }, undefined, undefined],
    [{ 'if-none-match': '*' }, 7, 412],
    [{ 'if-none-match': '"7"' }, 7, 412],
    [{ 'if-none-match': 'W/"7"' }, 7, 412],
    [{ 'if-none-match': '"6"' }, 7, undefined],
    [{ 'if-match': '"7"', 'if-none-match': '*' }, 7, 412],
    [{ 'if-match': '7' }, 7, 400],
    [{ 'if-match': '"7"', 'if-none-match': 'nothing' }, 7, 400],
    [{ 'if-match': '' }, 7, 400],
  ])('with %j at version %s is answered with %s', (headers, current, status) => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'POST']) expect(statusOf(method, headers as Record<string, string>, current)).toBe(status);
  });

  test('that has to have a precondition is refused without one, and otherwise judged by it', () => {
    expect(statusOf('PUT', {}, 7, true)).toBe(428);
    expect(statusOf('PUT', {}, undefined, true)).toBe(428);
    expect(statusOf('PUT', { 'if-match': '"7"' }, 7, true)).toBeUndefined();
    expect(statusOf('PUT', { 'if-none-match': '*' }, undefined, true)).toBeUndefined();
    expect(statusOf('PUT', { 'if-match': '"6"' }, 7, true)).toBe(412);
  });
});

describe('a read', () => {
  test.each([
    [{}, 200], [{ 'if-none-match': '"7"' }, 304], [{ 'if-none-match': 'W/"7"' }, 304], [{ 'if-none-match': '*' }, 304],
    [{ 'if-none-match': '"6"' }, 200], [{ 'if-match': '"6"' }, 412], [{ 'if-match': '"7"' }, 200], [{ 'if-none-match': 'nothing' }, 200],
  ])('with %j of version 7 is answered with %s', (headers, status) => {
    for (const method of ['GET', 'HEAD']) expect(statusOf(method, headers as Record<string, string>, 7) ?? 200).toBe(status);
  });

  test('never needs a precondition, and of nothing there is no 304', () => {
    expect(statusOf('GET', {}, 7, true)).toBeUndefined();
    expect(statusOf('GET', { 'if-none-match': '*' })).toBeUndefined();
  });

  test('that is not modified has the ETag and no body', async () => {
    const answer = ask('GET', { 'if-none-match': '"7"' }, 7);
    expect([answer?.headers.get('etag'), await answer?.text()]).toEqual(['"7"', '']);
  });
});

test.each([
  [412, 'precondition_failed', { 'if-match': '"6"' }],
  [428, 'precondition_required', {}],
  [400, 'precondition_invalid', { 'if-match': 'six' }],
])('%s is a problem that says what to do, as which version the resource exists, and is not cached', async (status, code, headers) => {
  const refusal = ask('PUT', headers as Record<string, string>, 7, true);
  expect(refusal?.headers.get('content-type')).toBe('application/problem+json');
  expect([refusal?.headers.get('etag'), refusal?.headers.get('cache-control')]).toEqual(['"7"', 'no-store']);
  expect(await refusal?.json()).toMatchObject({ type: `urn:samekey:problem:${code}`, code, status, retryable: false, detail: expect.stringContaining('othing was changed') });
});
