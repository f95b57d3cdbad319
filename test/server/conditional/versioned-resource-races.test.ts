import { beforeEach, describe, expect, test } from 'vitest';
import { versionedRows } from '../../../src/server/conditional/rows.js';
import { asNumber, type SqlDatabase, type SqlExecutor } from '../../../src/sql/index.js';
import { gate } from '../../sql/facts/items.js';
import { openForAll } from '../../support/open-for-all.js';
import { ORDERS_DATABASES, ordersOf, rowsOf, say as ask, URL_OF_ORDERS, versionIn, type OrdersDatabase, type Said } from './orders.js';

const NEW = { status: 'new', price: 5 };

describe.each(ORDERS_DATABASES)('a versioned resource and many at the same time, on %s', (_name, open) => {
  let opened: OrdersDatabase;
  openForAll(async () => {
    opened = await open();
    return opened.close;
  });
  beforeEach(() => opened.database.query('DELETE FROM orders'));

  /** Through one connection or the other, in turn, as two servers would. */
  let said = 0;
  const say = (method: string, body?: object, headers?: Record<string, string>): Promise<Said> => {
    const database = (said += 1) % 2 === 0 ? opened.database : opened.another;
    return ask({ ...opened, database }, method, { body, headers });
  };
  const rows = (): ReturnType<typeof rowsOf> => rowsOf(opened);
  const versions = async (): Promise<number[]> => (await rows()).map(({ version }) => asNumber(version));

  const WRITERS = 20;
  const atOnce = (write: (writer: number) => Promise<Said>): Promise<Said[]> => Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  const statuses = (answers: readonly Said[]): number[] => answers.map(({ status }) => status).toSorted();

  test('of writers with one If-Match exactly one wins', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { etag } = await say('PUT', { status: `round ${round}`, price: 0 });
      const answers = await atOnce(writer => say('PUT', { status: `writer ${writer}`, price: round }, { 'if-match': etag ?? '' }));
      expect(statuses(answers)).toEqual([204, ...Array.from({ length: WRITERS - 1 }, () => 412)]);
      const winner = answers.findIndex(({ status }) => status === 204);
      expect(await rows()).toMatchObject([{ status: `writer ${winner}` }]);
      expect(answers[winner]?.etag).toBe(`"${versionIn(etag) + 1}"`);
    }
  });

  test('of creators with If-None-Match: * exactly one creates', async () => {
    const answers = await atOnce(writer => say('PUT', { status: `${writer}`, price: 0 }, { 'if-none-match': '*' }));
    expect(statuses(answers)).toEqual([201, ...Array.from({ length: WRITERS - 1 }, () => 412)]);
  });

  test('the same PUT from many makes one row of one version', async () => {
    const answers = await atOnce(() => say('PUT', NEW));
    expect(statuses(answers)).toEqual([201, ...Array.from({ length: WRITERS - 1 }, () => 204)]);
    expect(new Set(answers.map(({ etag }) => etag)).size).toBe(1);
    expect(await rows()).toHaveLength(1);
  });

  test('different PUTs all count, one after the other, and each is told its own version', async () => {
    const { etag } = await say('PUT', NEW);
    const answers = await atOnce(writer => say('PUT', { status: `${writer}`, price: 1 }));
    expect(statuses(answers)).toEqual(Array.from({ length: WRITERS }, () => 204));
    expect(new Set(answers.map(answer => answer.etag)).size).toBe(WRITERS);
    expect(await versions()).toEqual([versionIn(etag) + WRITERS]);
  });

  test('DELETE and PUT end as one of the two, never as an error', async () => {
    await say('PUT', NEW);
    const answers = await atOnce(writer => (writer % 2 === 0 ? say('DELETE') : say('PUT', NEW)));
    expect(answers.map(({ status }) => status).filter(status => status !== 201 && status !== 204)).toEqual([]);
  });

  test('the statements themselves name the version: without a lock too, a stale one changes nothing', async () => {
    const table = versionedRows({ dialect: opened.dialect, table: 'orders', id: 'id', version: 'version', columns: ['status'] });
    await table.insert(opened.database, '1', { values: { status: 'new' }, version: 7 });
    await table.insert(opened.database, '1', { values: { status: 'again' }, version: 7 });
    expect(await table.update(opened.database, '1', { values: { status: 'stale' }, from: 6, to: 7 })).toBe(false);
    expect(await table.remove(opened.database, '1', 6)).toBe(false);
    expect(await table.read(opened.database, '1')).toEqual({ version: 7, values: expect.objectContaining({ status: 'new' }) });
    expect(await table.update(opened.database, '1', { values: { status: 'paid' }, from: 7, to: 8 })).toBe(true);
    expect(await table.remove(opened.database, '1', 8)).toBe(true);
  });

  test('creators who have all seen that nothing is there do not deadlock', async context => {
    if (opened.dialect === 'sqlite') context.skip('in SQLite nobody looks while somebody else writes');
    const [creators, allLooked] = [5, gate()];
    let looked = 0;
    /** Lets a transaction go on from its first statement when all have come as far. */
    const meeting = (sql: SqlExecutor): SqlExecutor => {
      let isFirst = true;
      return {
        async query(text, values) {
          const result = await sql.query(text, values);
          if (isFirst && (looked += 1) === creators) allLooked.open();
          if (isFirst) await allLooked.passed;
          isFirst = false;
          return result;
        },
      };
    };
    const database: SqlDatabase = { ...opened.database, transaction: (work, options) => opened.database.transaction((sql, tx) => work(meeting(sql), tx), options) };
    const orders = ordersOf({ ...opened, database });
    const answers = await Promise.all(Array.from({ length: creators }, () => orders.put(new Request(URL_OF_ORDERS, { method: 'PUT' }), '1', NEW)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 204, 204, 204, 204]);
  });
});
