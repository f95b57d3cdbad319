import { beforeEach, describe, expect, it } from 'vitest';
import { createDedup } from '../../../src/server/index.js';
import { mysqlDedupStore } from '../../../src/server/stores/mysql.js';
import type { SqlDatabase } from '../../../src/sql/index.js';
import { openForAll } from '../../support/open-for-all.js';
import type { Place } from '../../support/sql-servers.js';
import { openShop } from '../transactions/shop.js';
import { crowd } from './crowd.js';
import { freshMysql, type MysqlDatabase } from './mysql.js';

/** Connections that a library may open. */
export const MOST = 10;

/** A library that brings its own transactions. */
export interface Library<Tx> {
  readonly database: SqlDatabase<Tx>;
  close(): Promise<void>;
}

/**
 * What a store is by itself must not get lost in a library: how errors are told, how rows are counted.
 *
 * @param insert - writes a charge as the library's users do
 */
export const describeMysqlLibrary = <Tx>(name: string, connect: (place: Place) => Library<Tx>, insert: (tx: Tx, label: string, attempt: number) => Promise<unknown>): void => {
  describe(`mysqlDedupStore over ${name}`, () => {
    let db: MysqlDatabase;
    let library: Library<Tx>;
    openForAll(async () => {
      db = await freshMysql();
      library = connect(db.place);
      return async () => {
        await library.close();
        await db.drop();
      };
    });
    beforeEach(() => db.clear());

    it('28, C75: of 50 identical requests exactly one runs, the others hear 409 or get its answer', async () => {
      const dedup = createDedup({ store: mysqlDedupStore(library.database), scope: () => 'acme', on: { failed: () => {} } });
      const { runs, told } = await crowd([dedup], 50, async (_request, context) => {
        await insert(await context.transaction(), context.key ?? '', context.attempt);
        return Response.json({ charged: true }, { status: 201 });
      });
      const { executed, replayed = 0, 409: conflicts = 0, ...others } = told;
      expect({ runs, executed, rest: replayed + conflicts, others, charges: await db.count('charges') }).toEqual({ runs: 1, executed: 1, rest: 49, others: {}, charges: 1 });
    });

    it('a failed run leaves nothing behind, a refused one its answer only', async () => {
      const shop = openShop({ store: mysqlDedupStore(library.database), insert, charges: () => db.count('charges'), pass: db.pass });
      expect((await shop.send(async (_request, context) => (await shop.insert(context), Promise.reject(new TypeError('boom'))))).status).toBe(500);
      expect((await shop.send(async (_request, context) => (await shop.insert(context), new Response('no', { status: 402 })))).status).toBe(402);
      expect([(await shop.send(shop.charge)).status, await shop.charges()]).toEqual([402, 0]);
    });
  });
};
