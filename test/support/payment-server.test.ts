import { afterEach, beforeEach, expect, test } from 'vitest';
import { startPaymentServer } from './payment-server.js';
import type { PaymentServer } from './payment-server.js';

let server: PaymentServer;
beforeEach(async () => {
  server = await startPaymentServer();
});
afterEach(() => server.close());

const pay = (key?: string, amount = 1): Promise<Response> =>
  fetch(`${server.origin}/charges`, {
    method: 'POST', headers: key === undefined ? {} : { 'idempotency-key': key }, body: JSON.stringify({ order: '1', amount }),
  });

test('without a key every request is a charge', async () => {
  await pay();
  await pay();
  expect(server.effects).toHaveLength(2);
});

test('a key is charged once, and the second answer is the first, byte for byte', async () => {
  const [first, second] = [await pay('k'), await pay('k')];
  expect(await second.text()).toBe(await first.text());
  expect(second.headers.get('idempotent-replayed')).toBe('true');
  expect(server.effects).toHaveLength(1);
});

test('another body under the same key is refused and charged nothing', async () => {
  await pay('k', 1);
  expect((await pay('k', 2)).status).toBe(422);
  expect(server.effects).toHaveLength(1);
});

test('a lost request is no charge, a lost response is one', async () => {
  server.script({ kind: 'lose-request' }, { kind: 'lose-response' });
  await expect(pay('k')).rejects.toThrow();
  expect(server.effects).toHaveLength(0);
  await expect(pay('k')).rejects.toThrow();
  expect(server.effects).toHaveLength(1);
});

test('a cut body arrives with its status and breaks while it is read', async () => {
  server.script({ kind: 'cut-body' });
  const response = await pay('k');
  expect(response.status).toBe(201);
  await expect(response.text()).rejects.toThrow();
  expect(server.effects).toHaveLength(1);
});

test('while a charge is slow its key is in progress; released, it is answered and charged once', async () => {
  server.script({ kind: 'slow' });
  const slow = pay('k');
  await server.arrived(1);
  expect(server.effects).toHaveLength(0);
  expect((await pay('k')).status).toBe(409);
  server.release();
  expect((await slow).status).toBe(201);
  expect(server.effects).toHaveLength(1);
});

test('a child process can script faults and read the truth over HTTP', async () => {
  await fetch(`${server.origin}/-/script`, { method: 'POST', body: JSON.stringify([{ kind: 'status', status: 503 }]) });
  expect((await pay('k')).status).toBe(503);
  const state = await (await fetch(`${server.origin}/-/state`)).json() as { requests: { fault: string }[]; effects: unknown[] };
  expect(state.requests.map(({ fault }) => fault)).toEqual(['status']);
  expect(state.effects).toEqual([]);
});
