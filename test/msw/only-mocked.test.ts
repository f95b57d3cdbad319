import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { http, HttpResponse, passthrough } from 'msw';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createClient, isSamekeyError } from '../../src/index.js';
import { memoryKeyStore } from '../../src/keystore/memory.js';
import { createIdempotencyMock, NotMockedError, onlyMocked } from '../../src/msw/index.js';
import { CHARGES, useServer } from './support.js';

const server = useServer();

const reported: NotMockedError[] = [];
const report = (error: NotMockedError): void => void reported.push(error);
beforeEach(() => void reported.splice(0));

/** A server that MSW does not know: it says yes to everything, and counts. */
let requests = 0;
const real = createServer((_request, response) => {
  requests += 1;
  response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"real"}');
});
let origin = '';
beforeAll(async () => {
  await new Promise<void>(resolve => real.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(real.address() as AddressInfo).port}`;
});
afterAll(() => new Promise(resolve => real.close(resolve)));

const refusal = async (sent: Promise<Response>): Promise<NotMockedError> => {
  const error: unknown = await sent.then(() => undefined, (thrown: unknown) => thrown);
  if (error instanceof NotMockedError) return error;
  throw new Error('It should have been refused, and was not', { cause: error });
};

describe('onlyMocked', () => {
  it('C95: lets every answer of the mock pass: first, replay, refusal, and what faults make up', async () => {
    const mock = createIdempotencyMock();
    server.use(http.post(CHARGES, mock.idempotent(() => HttpResponse.json({}, { status: 201 }), { name: 'charge' })));
    const fetch = onlyMocked({ report });
    const statusOf = async (key: string): Promise<number> => (await fetch(CHARGES, { method: 'POST', headers: { 'idempotency-key': key } })).status;
    expect([await statusOf('k'), await statusOf('k'), await statusOf('a, b')]).toEqual([201, 201, 400]);
    mock.fault('charge', 'status', { status: 503 });
    mock.fault('charge', 'status', { status: 504, phase: 'response' });
    expect([await statusOf('k2'), await statusOf('k2')]).toEqual([503, 504]);
    mock.fault('charge', 'lose-response');
    await expect(statusOf('k3')).rejects.toThrow(TypeError);
    expect(reported).toEqual([]);
  });

  it('C95: refuses the answer of a real server, says what came and what to do, and shows it', async () => {
    server.use(http.post(`${origin}/*`, () => passthrough()));
    const error = await refusal(onlyMocked({ report })(`${origin}/charges`, { method: 'POST' }));
    expect(error.message).toMatch(/^POST http:\/\/127\.0\.0\.1:\d+\/charges was answered \(status 201\), but not by the mock.*no Samekey-Mock header.*ready: worker\.start\(\)/);
    expect([error.code, error.phase, await error.response?.json()]).toEqual(['NOT_MOCKED', 'answered', { id: 'real' }]);
    expect(reported).toEqual([error]);
    // By its code, which is what another copy of the package shares.
    expect(isSamekeyError(error)).toBe(true);
  });

  it('C95: a client does not take the answer of a real server for the result: the operation is kept, and the mock settles it', async () => {
    server.use(http.post(`${origin}/*`, () => passthrough()));
    const mock = createIdempotencyMock();
    const api = createClient({ prefix: origin, keystore: memoryKeyStore(), scope: 'acct_1', retry: 0, fetch: onlyMocked({ report }) });
    const post = () => api.post('charges', { operation: 'order:42:charge', json: { amount: 4200 } }).json();
    await expect(post()).rejects.toMatchObject({ code: 'OPERATION_PENDING', message: expect.stringContaining('NotMockedError'), cause: expect.any(NotMockedError) });
    expect(reported).toHaveLength(1);
    server.use(http.post(`${origin}/charges`, mock.idempotent(() => HttpResponse.json({ id: 'mocked' }, { status: 201 }), { name: 'charge' })));
    expect([await post(), mock.executions('charge')]).toEqual([{ id: 'mocked' }, 1]);
    await api.close();
  });

  it('C96: nothing leaves before the mock is ready', async () => {
    const before = requests;
    let start = (): void => {};
    const ready = new Promise<void>(resolve => (start = resolve));
    const mock = createIdempotencyMock();
    const sent = onlyMocked({ ready, report })(`${origin}/charges`, { method: 'POST', headers: { 'idempotency-key': 'k' } });
    await new Promise(resolve => setTimeout(resolve, 50));
    server.use(http.post(`${origin}/charges`, mock.idempotent(() => HttpResponse.json({ id: 'mocked' }, { status: 201 }), { name: 'charge' })));
    start();
    expect([await (await sent).json(), requests - before, mock.executions()]).toEqual([{ id: 'mocked' }, 0, 1]);
  });

  it('asks a function for what to wait for at each request', async () => {
    const mock = createIdempotencyMock();
    server.use(http.post(CHARGES, mock.idempotent(() => HttpResponse.json({}), { name: 'charge' })));
    let asked = 0;
    const fetch = onlyMocked({ ready: async () => (asked += 1), report });
    for (const key of ['a', 'b']) await fetch(CHARGES, { method: 'POST', headers: { 'idempotency-key': key } });
    expect(asked).toBe(2);
  });

  it('says that nothing was sent when the mock could not start', async () => {
    const before = requests;
    const cause = new Error('no service worker here');
    const error = await refusal(onlyMocked({ ready: () => Promise.reject(cause), report })(new Request(`${origin}/charges`, { method: 'POST' })));
    expect([error.message, error.cause, error.phase, error.response, requests - before]).toEqual([expect.stringMatching(/^POST .* was not sent, because.*did not start/), cause, 'not-sent', undefined, 0]);
  });
});
