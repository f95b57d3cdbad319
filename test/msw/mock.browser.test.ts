import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest';
import { http, HttpResponse } from 'msw';
import { setupWorker } from 'msw/browser';
import { createIdempotencyMock } from '../../src/msw/index.js';
import { indexedDBDedupStore } from '../../src/server/stores/indexeddb.js';
import { dropDatabase, freshName } from '../server/databases.js';
import { bePatient } from '../support/patience.js';
import type { MockPage } from './page/page.js';

bePatient();

const post = (key: string, body = '{"amount":4200}'): Promise<Response> =>
  fetch('/charges', { method: 'POST', headers: { 'idempotency-key': key, 'content-type': 'application/json' }, body });

describe('a mock in this page', () => {
  const worker = setupWorker();
  let database = '';
  let store = indexedDBDedupStore();

  beforeAll(() => worker.start({ quiet: true, onUnhandledFrame: 'bypass' }));
  afterAll(() => worker.stop());
  beforeEach(() => {
    database = freshName();
    store = indexedDBDedupStore({ name: database });
  });
  afterEach(async () => {
    worker.resetHandlers();
    await store.close();
    await dropDatabase(database);
  });

  it('runs one of 50 requests at once on IndexedDB, and replays it with its headers', async () => {
    const mock = createIdempotencyMock({ store });
    let effects = 0;
    worker.use(http.post('/charges', mock.idempotent(() => HttpResponse.json({ charge: (effects += 1) }, { status: 201, headers: { location: '/charges/1' } }), { name: 'charge' })));
    const responses = await Promise.all(Array.from({ length: 50 }, () => post('k')));
    expect([effects, mock.executions('charge')]).toEqual([1, 1]);
    for (const { status } of responses) expect([201, 409]).toContain(status);
    const replay = await post('k');
    expect([replay.status, replay.headers.get('idempotent-replayed'), replay.headers.get('location'), await replay.json()]).toEqual([201, 'true', '/charges/1', { charge: 1 }]);
  });

  it('loses a response after the effect, and replays it', async () => {
    const mock = createIdempotencyMock({ store });
    worker.use(http.post('/charges', mock.idempotent(() => HttpResponse.json({}, { status: 201 }), { name: 'charge' })));
    mock.fault('charge', 'lose-response');
    await expect(post('k')).rejects.toThrow(TypeError);
    expect([(await post('k')).headers.get('idempotent-replayed'), mock.executions('charge')]).toEqual(['true', 1]);
  });

  it('C79, C88: refuses another body with 422 and replays 204 without a body', async () => {
    const mock = createIdempotencyMock({ store });
    worker.use(http.post('/charges', mock.idempotent(() => new HttpResponse(null, { status: 204 }), { name: 'charge' })));
    await post('k');
    expect([(await post('k', '{}')).status, (await post('k')).status, mock.executions()]).toEqual([422, 204, 1]);
  });

  it('C99: goes on when its client gives up, and replays what it did', async () => {
    const mock = createIdempotencyMock({ store });
    let finish = (): void => {};
    const finished = new Promise<void>(resolve => (finish = resolve));
    worker.use(http.post('/charges', mock.idempotent(async () => finished.then(() => HttpResponse.json({}, { status: 201 })), { name: 'charge' })));
    const client = new AbortController();
    const sent = fetch('/charges', { method: 'POST', headers: { 'idempotency-key': 'k' }, signal: client.signal });
    await expect.poll(() => mock.executions()).toBe(1);
    client.abort();
    await expect(sent).rejects.toThrow(/abort/i);
    finish();
    await expect.poll(() => mock.ledger.some(({ kind }) => kind === 'answer')).toBe(true);
    const replay = await fetch('/charges', { method: 'POST', headers: { 'idempotency-key': 'k' } });
    expect([replay.headers.get('idempotent-replayed'), mock.executions()]).toEqual(['true', 1]);
  });
});

describe('a mock in a page that is reloaded', () => {
  const LEASE = 1_500;
  let database = '';
  let frame: HTMLIFrameElement;

  const open = async (settings: Record<string, string>): Promise<MockPage> => {
    const loaded = new Promise(resolve => frame.addEventListener('load', resolve, { once: true }));
    frame.src = `/test/msw/page/index.html?${new URLSearchParams({ database, lease: String(LEASE), ...settings })}`;
    await loaded;
    await expect.poll(() => frame.contentWindow?.page !== undefined).toBe(true);
    return frame.contentWindow?.page as MockPage;
  };

  beforeEach(() => {
    database = freshName();
    frame = document.createElement('iframe');
    document.body.append(frame);
  });
  afterEach(async () => {
    frame.contentWindow?.page?.stop();
    frame.remove();
    await dropDatabase(database);
  });

  it('C100: still knows what it executed: the answer is replayed, the effect stays one, the ledger is whole', async () => {
    const before = await open({ page: 'first' });
    expect(await (await before.charge('k')).json()).toEqual({ by: 'first' });
    const after = await open({ page: 'second' });
    expect(after.mock.executions('charge')).toBe(1);
    const replay = await after.charge('k');
    expect([await replay.json(), replay.headers.get('idempotent-replayed')]).toEqual([{ by: 'first' }, 'true']);
    expect(after.mock.executions('charge')).toBe(1);
    expect(after.mock.ledger.map(({ kind }) => kind)).toEqual(['request', 'claim', 'execution', 'answer', 'request', 'replay']);
  });

  it('a resolver that died with its page holds its key until the lease ends, then nobody knows', async () => {
    const before = await open({ page: 'first', resolver: 'hangs' });
    void before.charge('k').catch(() => {});
    await expect.poll(() => before.mock.executions()).toBe(1);
    const after = await open({ page: 'second' });
    expect(after.mock.executions()).toBe(1);
    expect((await after.charge('k')).status).toBe(409);
    await expect.poll(async () => ((await (await after.charge('k')).json()) as { code: string }).code, { interval: 200 }).toBe('idempotency_indeterminate');
    expect(await after.mock.resolve('k', 'not-applied')).toBe(true);
    expect([(await after.charge('k')).status, after.mock.executions()]).toEqual([201, 2]);
  });

  it('a resolver with idempotent effects that died with its page runs again after its lease', async () => {
    const before = await open({ page: 'first', resolver: 'hangs', effects: 'idempotent' });
    void before.charge('k').catch(() => {});
    await expect.poll(() => before.mock.executions()).toBe(1);
    const after = await open({ page: 'second', effects: 'idempotent' });
    await expect.poll(async () => (await after.charge('k')).status, { interval: 200 }).toBe(201);
    expect(after.mock.executions()).toBe(2);
  });
});
