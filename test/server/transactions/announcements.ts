import { describe, expect, it } from 'vitest';
import { openShop, type Shop, type ShopDatabase } from './shop.js';

const DAY = 86_400_000;

const failElsewhere = <Tx>({ send, insert }: Shop<Tx>): Promise<Response> =>
  send(async (_request, context) => {
    await insert(context);
    await context.effectStarted();
    throw new TypeError('the network went away');
  });

/** A database in which transactions hold keys, and can be cut off. */
export interface HoldingDatabase<Tx> extends ShopDatabase<Tx> {
  /** Notes of effects that are stored. */
  notes(): Promise<number>;
  /** Ends the connection of a transaction, and returns when it is gone. */
  cut(tx: Tx): Promise<void>;
}

/** Effects elsewhere that are announced by a handler whose transaction holds the key, and what a dead one leaves behind. */
export const describeAnnouncements = <Tx>(name: string, open: () => HoldingDatabase<Tx>): void => {
  describe(`effects elsewhere, announced in a transaction, ${name}`, () => {
    it('C69: a failure after them leaves doubt, and what the transaction did is rolled back', async () => {
      const shop = openShop(open());
      expect((await failElsewhere(shop)).status).toBe(500);
      const again = await shop.send(shop.charge);
      expect([again.status, await again.json(), await shop.charges()]).toMatchObject([409, { code: 'idempotency_indeterminate', safe_new_key: false }, 0]);
      expect(await shop.dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'not-applied')).toBe(true);
      expect([(await shop.send(shop.charge)).status, await shop.charges()]).toEqual([201, 1]);
    });

    it('are not forgotten when the transaction dies with its connection', async () => {
      const database = open();
      const { send, charge, record, charges } = openShop(database);
      const dying = await send(async (_request, context) => {
        const tx = await context.transaction();
        await database.insert(tx, 'k', 1);
        await context.effectStarted();
        await database.cut(tx);
        return Response.json({ charged: true });
      });
      expect([dying.status, (await record())?.state, await charges()]).toEqual([500, 'in_progress', 0]);
      expect(await (await send(charge)).json()).toMatchObject({ code: 'idempotency_indeterminate' });
      expect((await record())?.state).toBe('indeterminate');
    });

    it('were there none, a worker that dies in its transaction frees the key at once', async () => {
      const database = open();
      const { send, insert, charge, charges } = openShop(database);
      await send(async (_request, context) => {
        await insert(context);
        await database.cut(await context.transaction());
        return new Response('never', { status: 201 });
      });
      expect([(await send(charge)).status, await charges()]).toEqual([201, 1]);
    });

    it('count for nothing once the run that announced them has settled', async () => {
      const { send, charge, charges, pass } = openShop(open());
      await send(async (request, context) => (await context.effectStarted(), charge(request, context)));
      await pass(DAY + 1);
      const fresh = await send(charge);
      expect([fresh.status, fresh.headers.get('idempotency-status'), await charges()]).toEqual([201, 'stored', 2]);
    });

    it('leave no notes behind when their keys are purged', async () => {
      const database = open();
      const { send, charge, pass, dedup } = openShop(database);
      await send(async (request, context) => (await context.effectStarted(), charge(request, context)));
      expect(await database.notes()).toBe(1);
      await pass(DAY + 1);
      expect([await dedup.purge(), await database.notes()]).toMatchObject([{ deleted: 1, more: false }, 0]);
    });
  });
};
