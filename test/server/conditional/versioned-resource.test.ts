import { beforeEach, describe, expect, test } from 'vitest';
import { versionedResource } from '../../../src/server/conditional/index.js';
import { asNumber } from '../../../src/sql/index.js';
import { failureOf } from '../../sql/facts/items.js';
import { openForAll } from '../../support/open-for-all.js';
import { ORDERS_DATABASES, ordersOf, rowsOf, say as ask, URL_OF_ORDERS, versionIn, type Ask, type OrdersDatabase, type Said } from './orders.js';

describe.each(ORDERS_DATABASES)('a versioned resource on %s', (_name, open) => {
  let opened: OrdersDatabase;
  openForAll(async () => {
    opened = await open();
    return opened.close;
  });
  beforeEach(() => opened.database.query('DELETE FROM orders'));

  const say = (method: string, body?: object, headers?: Record<string, string>, options?: Ask['options']): Promise<Said> => ask(opened, method, { body, headers, options });
  const rows = (): ReturnType<typeof rowsOf> => rowsOf(opened);
  const versions = async (): Promise<number[]> => (await rows()).map(({ version }) => asNumber(version));

  const NEW = { status: 'new', price: 5 };
  const PAID = { status: 'paid', price: 5 };

  describe('PUT', () => {
    test('makes the row, and the same again leaves one row and its version as they are', async () => {
      const first = await say('PUT', NEW);
      const again = await say('PUT', NEW);
      expect([first.status, again.status, again.etag]).toEqual([201, 204, first.etag]);
      expect(await versions()).toEqual([versionIn(first.etag)]);
    });

    test('with another content replaces it, and the version advances once, however often that is repeated', async () => {
      const first = await say('PUT', NEW);
      const second = await say('PUT', PAID);
      const [version] = await versions();
      expect([second.status, version]).toEqual([204, versionIn(first.etag) + 1]);
      for (let repeat = 0; repeat < 3; repeat += 1) expect((await say('PUT', PAID)).etag).toBe(second.etag);
      expect(await versions()).toEqual([version]);
    });

    test('knows the same from the same as the database does: 5, 5.00 and "5" are one price, A and a are two states', async () => {
      const first = await say('PUT', { status: 'a', price: 5 });
      expect((await say('PUT', { status: 'a', price: '5.00' })).etag).toBe(first.etag);
      const other = await say('PUT', { status: 'A', price: '5' });
      expect(versionIn(other.etag)).toBe(versionIn(first.etag) + 1);
      expect((await rows())[0]).toMatchObject({ status: 'A' });
    });

    test('with If-None-Match: * creates and never replaces', async () => {
      expect((await say('PUT', NEW, { 'if-none-match': '*' })).status).toBe(201);
      expect((await say('PUT', PAID, { 'if-none-match': '*' })).status).toBe(412);
      expect((await rows())[0]).toMatchObject({ status: 'new' });
    });

    test('with If-Match replaces that version; the same again is stale and refused, not applied', async () => {
      const { etag } = await say('PUT', NEW);
      const second = await say('PUT', PAID, { 'if-match': etag ?? '' });
      expect(second.status).toBe(204);
      const stale = await say('PUT', { status: 'cancelled', price: 0 }, { 'if-match': etag ?? '' });
      expect([stale.status, stale.etag]).toEqual([412, second.etag]);
      expect(await say('PUT', PAID, { 'if-match': etag ?? '' })).toMatchObject({ status: 412, etag: second.etag });
      expect(await rows()).toMatchObject([{ status: 'paid' }]);
    });

    test('with If-Match never makes a row', async () => {
      for (const match of ['*', '"7"']) expect((await say('PUT', NEW, { 'if-match': match })).status).toBe(412);
      expect(await rows()).toEqual([]);
    });

    test('without a value for a column is an error, because it would be a half replacement', async () => {
      expect(await failureOf(say('PUT', { status: 'new' }))).toMatchObject({ message: expect.stringContaining('no value came for price') });
      expect(await rows()).toEqual([]);
    });

    test('writes over no other row, when a unique index of another column is in the way', async () => {
      const orders = versionedResource({ ...opened, table: 'orders', columns: ['note'] });
      const request = new Request(URL_OF_ORDERS, { method: 'PUT' });
      await orders.put(request, 'a', { note: 'mine' });
      expect(await failureOf(orders.put(request, 'b', { note: 'mine' }))).toBeInstanceOf(Error);
      expect((await opened.database.query('SELECT id, note FROM orders')).rows.map(row => ({ ...row }))).toEqual([{ id: 'a', note: 'mine' }]);
    });

    test('compares bytes and documents as what they are', async () => {
      const orders = versionedResource({ ...opened, table: 'orders', columns: ['proof', 'details'] });
      const put = async (proof: readonly number[], details: object): Promise<string | null> =>
        (await orders.put(new Request(URL_OF_ORDERS, { method: 'PUT' }), 'a', { proof: new Uint8Array(proof), details: JSON.stringify(details) })).headers.get('etag');
      const first = await put([1, 0, 255], { a: 1 });
      expect([await put([1, 0, 255], { a: 1 }), await put([1, 0, 254], { a: 1 }), await put([1, 0, 254], { a: 2 })]).toEqual([first, expect.not.stringMatching(first ?? ''), expect.anything()]);
      expect(asNumber((await opened.database.query('SELECT version FROM orders')).rows[0]?.['version'])).toBe(versionIn(first) + 2);
    });
  });

  describe('PATCH', () => {
    test('sets what it names and leaves the rest; the same again changes nothing', async () => {
      await say('PUT', NEW);
      const first = await say('PATCH', { status: 'paid' });
      expect(await say('PATCH', { status: 'paid' })).toEqual({ status: 204, etag: first.etag, body: undefined });
      expect((await rows()).map(({ status, price }) => [status, Number(price)])).toEqual([['paid', 5]]);
    });

    test('leaves alone what is undefined, sets null, and with nothing to set changes nothing', async () => {
      const { etag } = await say('PUT', NEW);
      const patch = (values: { status?: null; price?: undefined }) => ordersOf(opened).patch(new Request(URL_OF_ORDERS, { method: 'PATCH' }), '1', values);
      expect([(await patch({ price: undefined })).headers.get('etag'), (await patch({})).headers.get('etag')]).toEqual([etag, etag]);
      await patch({ status: null, price: undefined });
      expect((await rows()).map(({ status, price }) => [status, Number(price)])).toEqual([[null, 5]]);
    });

    test('of what is not there is 404, and with If-Match 412', async () => {
      expect([(await say('PATCH', PAID)).status, (await say('PATCH', PAID, { 'if-match': '*' })).status]).toEqual([404, 412]);
      expect(await rows()).toEqual([]);
    });

    test('with a stale If-Match is refused, not applied', async () => {
      const { etag } = await say('PUT', NEW);
      expect((await say('PATCH', { status: 'paid' }, { 'if-match': etag ?? '' })).status).toBe(204);
      expect((await say('PATCH', { price: 6 }, { 'if-match': etag ?? '' })).status).toBe(412);
      expect((await rows()).map(({ status, price }) => [status, Number(price)])).toEqual([['paid', 5]]);
    });

    test('of a column that is not the resource\'s is an error, whoever wrote the body', async () => {
      await say('PUT', NEW);
      expect(await failureOf(say('PATCH', { version: 0 }))).toMatchObject({ message: expect.stringContaining('status, price') });
      expect(await failureOf(say('PATCH', { 'status = \'x\' --': 1 }))).toBeInstanceOf(TypeError);
      expect(await rows()).toMatchObject([{ status: 'new' }]);
    });
  });

  describe('DELETE', () => {
    test('makes sure that nothing is there: twice is success', async () => {
      await say('PUT', NEW);
      expect([(await say('DELETE')).status, (await say('DELETE')).status]).toEqual([204, 204]);
      expect(await rows()).toEqual([]);
    });

    test('with If-Match removes that version only, and what is gone already is success', async () => {
      const { etag } = await say('PUT', NEW);
      await say('PUT', PAID);
      expect((await say('DELETE', undefined, { 'if-match': etag ?? '' })).status).toBe(412);
      const { etag: current } = await say('GET');
      const headers = { 'if-match': current ?? '' };
      expect([(await say('DELETE', undefined, headers)).status, (await say('DELETE', undefined, headers)).status]).toEqual([204, 204]);
    });

    test('and a new row of the same id never bring an old ETag back', async () => {
      const { etag: old } = await say('PUT', NEW);
      await say('DELETE');
      const { etag: anew } = await say('PUT', NEW);
      expect(anew).not.toBe(old);
      expect((await say('PUT', PAID, { 'if-match': old ?? '' })).status).toBe(412);
    });
  });

  describe('GET', () => {
    test('gives the row as JSON with its ETag, 304 to who has it, 404 of nothing', async () => {
      expect((await say('GET')).status).toBe(404);
      const { etag } = await say('PUT', NEW);
      const got = await say('GET');
      expect(got).toMatchObject({ status: 200, etag, body: { id: '1', status: 'new' } });
      expect(Object.keys(got.body as object)).toEqual(['id', 'status', 'price']);
      expect(await say('GET', undefined, { 'if-none-match': etag ?? '' })).toEqual({ status: 304, etag, body: undefined });
    });

    test('gives what `represent` makes of the row', async () => {
      await say('PUT', NEW);
      const represent = ({ status }: Readonly<Record<string, unknown>>): object => ({ state: status, big: 2n ** 60n });
      expect((await say('GET', undefined, {}, { represent })).body).toEqual({ state: 'new', big: '1152921504606846976' });
    });
  });

  test('writes that have to say which version they mean are refused when they do not', async () => {
    const required = { required: true };
    expect((await say('PUT', NEW, {}, required)).status).toBe(428);
    const { etag } = await say('PUT', NEW, { 'if-none-match': '*' }, required);
    for (const method of ['PUT', 'PATCH']) expect((await say(method, PAID, {}, required)).status).toBe(428);
    expect((await say('DELETE', undefined, {}, required)).status).toBe(428);
    expect((await say('PUT', PAID, { 'if-match': etag ?? '' }, required)).status).toBe(204);
    expect((await say('GET', undefined, {}, required)).status).toBe(200);
  });

  test('works in a transaction of the caller, and is undone with it', async () => {
    const orders = ordersOf(opened);
    const request = new Request(`${URL_OF_ORDERS}1`, { method: 'PUT' });
    await failureOf(opened.database.transaction(async sql => {
      expect((await orders.within(sql).put(request, '1', NEW)).status).toBe(201);
      expect((await orders.within(sql).get(new Request(`${URL_OF_ORDERS}1`), '1')).status).toBe(200);
      throw new Error('undo');
    }));
    expect(await rows()).toEqual([]);
  });

  test('says so when a table has no primary key, and two rows have one id', async () => {
    await opened.database.query('CREATE TABLE loose (id varchar(9), status varchar(9), version bigint)');
    await opened.database.query(`INSERT INTO loose VALUES ('1', 'a', 1), ('1', 'b', 1)`);
    const loose = versionedResource({ ...opened, table: 'loose', columns: ['status'] });
    expect(await failureOf(loose.put(new Request(URL_OF_ORDERS, { method: 'PUT' }), '1', { status: 'c' }))).toMatchObject({ message: expect.stringContaining('primary key') });
    await opened.database.query('DROP TABLE loose');
  });
});

test('names that are none are refused before anything is asked of the database', () => {
  const database = { query: async () => ({ rows: [], changed: 0 }), transaction: () => Promise.reject(new Error('asked')) };
  const of = (names: object) => () => versionedResource({ database, dialect: 'postgres', table: 'orders', columns: ['status'], ...names });
  for (const names of [{ table: 'orders; DROP' }, { columns: ['a b'] }, { id: '' }, { version: '1' }]) expect(of(names)).toThrow('is not a name for SQL');
});
