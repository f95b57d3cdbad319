import { describe, expect, it } from 'vitest';
import { gate, isReplay } from '../support/endpoint.js';
import { hold, openShop, type ShopDatabase } from './shop.js';

/** What others hear while a handler has its transaction open: for databases in which transactions do not wait for each other. */
export const describeDuplicates = <Tx>(name: string, open: () => ShopDatabase<Tx>): void => {
  describe(`duplicates, ${name}`, () => {
    it('C91: a duplicate hears 409 at once while the first run goes on, another body 422, other keys run', async () => {
      const shop = openShop(open());
      const { send, charge, insert } = shop;
      const [opened, done] = [gate(), gate()];
      const first = send(async (request, context) => {
        await insert(context);
        opened.open();
        await done.opened;
        return charge(request, context);
      });
      await opened.opened;
      const duplicate = await send(charge);
      expect([duplicate.status, duplicate.headers.get('retry-after')]).toEqual([409, expect.stringMatching(/^[1-5]$|^30$/)]);
      expect((await send(charge, { key: 'k', body: '{"amount":1}' })).status).toBe(422);
      expect((await send(charge, { key: 'other' })).status).toBe(201);
      done.open();
      expect([(await first).status, isReplay(await send(charge))]).toEqual([201, true]);
    });
  });
};

/** What becomes of a handler that was slower than its lease. */
export const describeStaleHandlers = <Tx>(name: string, open: () => ShopDatabase<Tx>): void => {
  describe(`a slow handler, ${name}`, () => {
    it('38: leaves nothing behind when another run took its key over, and its client gets what the winner answered', async () => {
      const shop = openShop(open(), { effects: 'idempotent', lease: 3_600_000 });
      const { first: stale, goOn } = await hold(shop, async (_request, context) => (await shop.insert(context), Response.json({ by: 'slow' }, { status: 201 })));
      await shop.pass(3_600_001);
      const winner = await shop.send(async (_request, context) => (await shop.insert(context), Response.json({ by: 'winner' }, { status: 201 })));
      goOn();
      const overruled = await stale;
      expect([winner.status, overruled.status, await overruled.json(), isReplay(overruled)]).toEqual([201, 201, { by: 'winner' }, true]);
      expect([await shop.charges(), (await shop.record())?.fence]).toEqual([1, 2]);
    });
  });
};
