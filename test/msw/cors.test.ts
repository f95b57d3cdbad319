import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { http, HttpResponse, passthrough } from 'msw';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../src/index.js';
import { memoryKeyStore } from '../../src/keystore/memory.js';
import { createIdempotencyMock, type MockCors } from '../../src/msw/index.js';
import { charge, CHARGES, kindsOf, networkError, useServer } from './support.js';

const server = useServer();

const JSON_ONLY: MockCors = { allowHeaders: ['content-type'] };
const WITH_KEY: MockCors = { allowHeaders: ['Content-Type', 'Idempotency-Key'] };

const mocked = (cors: MockCors) => {
  const mock = createIdempotencyMock({ cors });
  const answer = (): Response => HttpResponse.json({ id: 'ch_1' }, { status: 201, headers: { location: '/charges/1', 'x-secret': '1' } });
  server.use(http.post(CHARGES, mock.idempotent(answer, { name: 'charge' })));
  return mock;
};

const clientOf = (options: Parameters<typeof createClient>[0] = {}) =>
  createClient({ prefix: 'https://api.test', keystore: memoryKeyStore(), scope: 'acct_1', retry: { limit: 2, delay: () => 10 }, ...options });

const payment = { operation: 'order:42:charge', json: { amount: 4200 } };

describe('a mock that keeps to CORS', () => {
  it('C13: a key header that no preflight allows arrives nowhere: bounded retries, record kept; once it is allowed the same key succeeds', async () => {
    const strict = mocked(JSON_ONLY);
    const api = clientOf();
    await expect(api.post('charges', payment)).rejects.toMatchObject({ code: 'OPERATION_PENDING', cause: expect.any(TypeError) });
    expect(strict.executions()).toBe(0);
    expect(strict.ledger).toEqual(Array.from({ length: 3 }, () => expect.objectContaining({ kind: 'blocked', headers: ['idempotency-key'] })));
    const kept = await api.operations.get(payment.operation);
    expect(kept?.state).toBe('pending');
    server.resetHandlers();
    const allowing = mocked(WITH_KEY);
    expect(await api.post('charges', payment).json()).toEqual({ id: 'ch_1' });
    expect([allowing.executions(), new Set(allowing.ledger.map(({ key }) => key))]).toEqual([1, new Set([kept?.key])]);
    await api.close();
  });

  it('C13: a Retry-After that is not exposed is not seen: the client backs off as usual and goes on; exposed, it is obeyed', async () => {
    const hour = { status: 503, headers: { 'retry-after': '3600' } } as const;
    const hidden = mocked(WITH_KEY);
    hidden.fault('charge', 'status', hour);
    const api = clientOf();
    expect(await api.post('charges', payment).json()).toEqual({ id: 'ch_1' });
    await api.close();
    server.resetHandlers();
    const exposing = mocked({ ...WITH_KEY, exposeHeaders: ['Retry-After'] });
    exposing.fault('charge', 'status', hour);
    const other = clientOf({ totalTimeout: 5_000 });
    // Waiting for it would take longer than the call may, so the call ends at once.
    await expect(other.post('charges', payment)).rejects.toMatchObject({ code: 'OPERATION_PENDING', nextAttemptAt: expect.any(Number), response: { status: 503 } });
    await other.close();
  });

  it('C13: shows a page what is exposed to it, and the mark of the mock', async () => {
    mocked({ ...WITH_KEY, exposeHeaders: ['Idempotent-Replayed', 'location'] });
    await charge();
    const replay = await charge();
    expect(Object.fromEntries(replay.headers)).toEqual({ 'content-type': 'application/json', 'idempotent-replayed': 'true', location: '/charges/1', 'samekey-mock': 'charge' });
    expect([replay.status, await replay.json()]).toEqual([201, { id: 'ch_1' }]);
  });

  it('lets a form through without a question, JSON not, and takes * for everything but credentials', async () => {
    const mock = mocked({});
    expect(await networkError(charge({ key: '' }))).toBeInstanceOf(TypeError);
    expect((await charge({ key: '', headers: { 'content-type': 'text/plain;charset=UTF-8' } })).status).toBe(400);
    expect(kindsOf(mock.ledger)).toEqual(['blocked', 'request', 'refusal']);
    server.resetHandlers();
    const star = mocked({ allowHeaders: '*', exposeHeaders: '*' });
    expect((await charge()).headers.get('x-secret')).toBe('1');
    expect(await networkError(charge({ headers: { authorization: 'Bearer x' } }))).toBeInstanceOf(TypeError);
    expect(star.ledger.at(-1)).toMatchObject({ kind: 'blocked', headers: ['authorization'] });
  });

  it('leaves lost answers and requests that pass through to the network alone', async () => {
    const mock = mocked(WITH_KEY);
    mock.fault('charge', 'lose-response');
    expect(await networkError(charge())).toBeInstanceOf(TypeError);
    server.resetHandlers();
    const real = createServer((_request, response) => response.setHeader('x-secret', '1').end('real'));
    await new Promise<void>(resolve => real.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(real.address() as AddressInfo).port}/`;
    const through = createIdempotencyMock({ cors: WITH_KEY });
    server.use(http.post(url, through.idempotent(() => passthrough(), { name: 'charge' })));
    const response = await charge({ url });
    expect([await response.text(), response.headers.get('x-secret')]).toEqual(['real', '1']);
    await new Promise(resolve => real.close(resolve));
  });
});
