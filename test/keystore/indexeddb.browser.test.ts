import { promisifyRequest } from 'idb-keyval';
import { describe, expect, it } from 'vitest';
import { indexedDBKeyStore } from '../../src/keystore/indexeddb.js';
import type { HeadRef, KeyStore } from '../../src/keystore/keystore.js';
import { describeKeyStore } from '../../src/testing/index.js';
import { CLIENT, begin, bytes, headOf, readAll, refOf, replace, times } from '../../src/testing/keystore/subject.js';

/** A database of its own for each test, with a way past the store. */
const freshDatabase = () => {
  const name = `test-${crypto.randomUUID()}`;
  const raw = async <T>(work: (rows: IDBObjectStore) => Promise<T> | T): Promise<T> => {
    const db = await promisifyRequest(indexedDB.open(name));
    const transaction = db.transaction('rows', 'readwrite');
    const result = await work(transaction.objectStore('rows'));
    await promisifyRequest(transaction);
    db.close();
    return result;
  };
  const change = (ref: HeadRef, to: (row: object) => unknown): Promise<unknown> =>
    raw(async rows => {
      const key = [ref.client, ref.scope, ref.id];
      const row = await promisifyRequest(rows.get(key));
      rows.put(to(row), key);
    });
  const drop = (): Promise<unknown> => promisifyRequest(indexedDB.deleteDatabase(name));
  return { name, raw, change, drop };
};

describeKeyStore({ describe, it }, 'indexedDBKeyStore', () => {
  const { name, change, drop } = freshDatabase();
  return {
    open: () => indexedDBKeyStore({ name }),
    spoil: async ref => void (await change(ref, row => ({ ...row, writtenAt: 'yesterday' }))),
    dispose: async () => void (await drop()),
  };
});

describe('indexedDBKeyStore', () => {
  it('shows', async () => {
    expect(1).toBe(1);
  });
});
