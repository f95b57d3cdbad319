import { describe, expect, it } from 'vitest';
import { isReplay } from '../support/endpoint.js';
import { openShop, type ShopDatabase } from './shop.js';

/** What the transaction of a handler is, whatever holds its key: the same facts for every store on a database. */
export const describeHandlerTransactions = <Tx>(name: string, open: () => ShopDatabase<Tx>): void => {
  describe(`the transaction of a handler, ${name}`, () => {
    it('commits effects and answer together', async () => {
      const { send, charge, charges } = openShop(open());
      const first = await send(charge);
      expect([first.status, first.headers.get('idempotency-status'), await charges()]).toEqual([201, 'stored', 1]);
      const again = await send(charge);
      expect([again.status, isReplay(again), await again.json(), await charges()]).toEqual([201, true, { charged: true }, 1]);
    });

    it('rolls back what a refused request did, and stores the refusal', async () => {
      const { send, insert, charge, charges, record } = openShop(open());
      expect((await send(async (_request, context) => (await insert(context), Response.json({ no: 'funds' }, { status: 402 })))).status).toBe(402);
      expect([await charges(), await record()]).toMatchObject([0, { state: 'completed', attempts: 1, fence: 1, answer: { status: 402 } }]);
      const again = await send(charge);
      expect([again.status, isReplay(again), await charges()]).toEqual([402, true, 0]);
    });

    it('keeps what a refused request did where that is asked for', async () => {
      const { send, insert, charges } = openShop(open(), { commitOnError: true });
      await send(async (_request, context) => (await insert(context), new Response(null, { status: 402 })));
      expect(await charges()).toBe(1);
    });

    it('rolls back what a failed run did, and the same request runs again', async () => {
      const { send, insert, charge, charges, record } = openShop(open());
      expect((await send(async (_request, context) => (await insert(context), Promise.reject(new TypeError('boom'))))).status).toBe(500);
      expect([await charges(), await record()]).toMatchObject([0, { state: 'retryable', fingerprint: expect.any(String) }]);
      expect((await send(async (_request, context) => (await insert(context), new Response(null, { status: 503 })))).status).toBe(503);
      expect((await send(charge, { key: 'k', body: '{"amount":1}' })).status).toBe(422);
      expect([(await send(charge)).status, await charges()]).toEqual([201, 1]);
    });

    it('rolls back for who was turned away, and any request may use the key', async () => {
      const { send, insert, charge, charges, record } = openShop(open());
      await send(async (_request, context) => (await insert(context), new Response(null, { status: 429 })));
      expect([await charges(), await record()]).toMatchObject([0, { state: 'retryable' }]);
      expect((await record())?.fingerprint).toBeUndefined();
      expect([(await send(charge, { key: 'k', body: '{"amount":1}' })).status, await charges()]).toEqual([201, 1]);
    });

    it('is an ordinary one without a key, and ends the same way', async () => {
      const { send, insert, charge, charges } = openShop(open(), { required: false });
      expect((await send(charge, {})).headers.get('idempotency-status')).toBe('none');
      expect(await charges()).toBe(1);
      await send(async (_request, context) => (await insert(context), new Response(null, { status: 400 })), {});
      await expect(send(async (_request, context) => (await insert(context), Promise.reject(new Error('boom'))), {})).rejects.toThrow('boom');
      expect(await charges()).toBe(1);
    });
  });
};
