import { promisifyRequest } from 'idb-keyval';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { indexedDBKeyStore } from '../../src/keystore/indexeddb.js';
import type { HeadRef, KeyStore } from '../../src/keystore/keystore.js';
import { describeKeyStore } from '../../src/testing/index.js';
import { CLIENT, START, begin, bytes, headOf, kindsOf, readAll, refOf, remove, replace, times, type TestHead } from '../../src/testing/keystore/subject.js';

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

const open = (name = freshDatabase().name) => {
  const store = indexedDBKeyStore({ name });
  onTestFinished(async () => {
    await store.close();
    await promisifyRequest(indexedDB.deleteDatabase(name));
  });
  return store;
};

/** A method of the platform as it was before a spy took its place. */
const original = <T extends object, K extends keyof T>(prototype: T, method: K) => {
  const call = prototype[method] as (...args: unknown[]) => unknown;
  return (self: T, args: readonly unknown[]) => call.apply(self, [...args]) as T[K] extends (...args: never[]) => infer R ? R : never;
};

const settle = (head: TestHead) => replace(head, { shelf: 'settled', due: START + 1000, request: null, response: bytes(20) });

afterEach(() => void vi.restoreAllMocks());

describe('indexedDBKeyStore', () => {
  it('C49: begins strictly and settles as relaxed as it is asked to, and a batch is as strict as its strictest write', async () => {
    const transaction = vi.spyOn(IDBDatabase.prototype, 'transaction');
    const durabilities = (): unknown[] => transaction.mock.calls.filter(([, mode]) => mode === 'readwrite').map(([, , options]) => options?.durability);
    const store = open();
    const [a, b] = [headOf(refOf('name:a')), headOf(refOf('name:b'))];
    await store.commit([begin(a)]);
    await store.commit([settle(a)], 'relaxed');
    await Promise.all([store.commit([begin(b)], 'strict'), store.commit([remove(settle(a).next as TestHead)], 'relaxed')]);
    expect(durabilities()).toEqual(['strict', 'relaxed', 'strict']);
  });

  it('C49: answers a begin only when its transaction is complete', async () => {
    const events: string[] = [];
    const transaction = original(IDBDatabase.prototype, 'transaction');
    vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
      const opened = transaction(this, args);
      if (args[1] === 'readwrite') opened.addEventListener('complete', () => events.push('complete'));
      return opened;
    });
    await open().commit([begin(headOf(refOf('name:a')))]).then(() => events.push('answered'));
    expect(events).toEqual(['complete', 'answered']);
  });

  it('C43: makes all requests of a batch in one transaction, without waiting for anything else in between', async () => {
    const transaction = vi.spyOn(IDBDatabase.prototype, 'transaction');
    const store = open();
    const old = times(20, at => headOf(refOf(`name:old:${at}`), { request: bytes(2000) }));
    await store.commit(old.map(begin));
    await store.get(refOf('name:old:1'));
    transaction.mockClear();
    const young = times(20, at => headOf(refOf(`name:young:${at}`), { request: bytes(2000) }));
    const results = await Promise.all([...young.map(begin), ...old.map(settle), ...old.map(begin)].map(write => store.commit([write])));
    expect(results.flatMap(kindsOf).filter(kind => kind === 'ok')).toHaveLength(40);
    expect(transaction).toHaveBeenCalledTimes(1);
  });

  it('C44, C45: keeps bodies as ArrayBuffers and headers as pairs, and gives them back as they were', async () => {
    const { name, raw } = freshDatabase();
    const store = open(name);
    const head = headOf(refOf('name:a'), { request: bytes(5000), response: bytes(10) });
    await store.commit([begin(head)]);
    const row = await raw(rows => promisifyRequest<TestHead>(rows.get([head.client, head.scope, head.id])));
    expect(row.request).toBeInstanceOf(ArrayBuffer);
    expect(row).toEqual(head);
    expect(await store.get(head)).toEqual(head);
  });

  it('C44: a body that was handed over to someone else fails alone', async () => {
    const store = open();
    const gone = bytes(8);
    structuredClone(gone, { transfer: [gone] });
    const results = await store.commit([begin(headOf(refOf('name:a'))), begin(headOf(refOf('name:b'), { request: gone })), begin(headOf(refOf('name:c')))]);
    expect(kindsOf(results)).toEqual(['ok', 'failed', 'ok']);
    expect(results[1]).toMatchObject({ error: { name: 'DataCloneError' } });
    expect((await readAll(store, 'open', 10)).map(({ id }) => id)).toEqual(['name:a', 'name:c']);
  });

  it('C47: a wiped database is empty, and the same operation begins again', async () => {
    const { name, drop } = freshDatabase();
    const store = open(name);
    const head = headOf(refOf('name:a'));
    await store.commit([begin(head)]);
    await drop();
    expect(await store.scan({ client: CLIENT, shelf: 'open', limit: 10 })).toEqual([]);
    expect(await store.latest()).toBe(0);
    expect(kindsOf(await store.commit([settle(head)]))).toEqual(['conflict']);
    expect(kindsOf(await store.commit([begin(head)]))).toEqual(['ok']);
  });

  it('believes no version it remembers once another page has committed', async () => {
    const { name } = freshDatabase();
    const [one, other] = [open(name), open(name)];
    const head = headOf(refOf('name:a'));
    // With the first commit it becomes the last writer; what it remembers counts from then on.
    await one.commit([begin(headOf(refOf('name:first')))]);
    await one.commit([begin(head)]);
    const taken = replace(head, { note: 'taken over' });
    expect(kindsOf(await other.commit([taken]))).toEqual(['ok']);
    expect(await one.commit([replace(head, { note: 'stale' })])).toEqual([{ kind: 'conflict', head: taken.next }]);
    expect(kindsOf(await one.commit([settle(taken.next as TestHead)]))).toEqual(['ok']);
  });

  it('reads no head again that it wrote itself while nobody else commits', async () => {
    const store = open();
    await store.commit([begin(headOf(refOf('name:first')))]);
    const heads = times(10, at => headOf(refOf(`name:${at}`)));
    await store.commit(heads.map(begin));
    const reads = vi.spyOn(IDBObjectStore.prototype, 'get');
    expect(new Set(kindsOf(await store.commit(heads.map(settle))))).toEqual(new Set(['ok']));
    expect(reads.mock.calls).toEqual([['meta']]);
  });

  it('keeps the highest time when another page with an earlier clock commits', async () => {
    const { name } = freshDatabase();
    const [one, other] = [open(name), open(name)];
    await one.commit([begin(headOf(refOf('name:a'), { writtenAt: START + 90_000 }))]);
    await other.commit([begin(headOf(refOf('name:b'), { writtenAt: START }))]);
    expect([await one.latest(), await other.latest()]).toEqual([START + 90_000, START + 90_000]);
  });

  it('knows its own write again when the news of its commit was lost', async () => {
    let lost = 1;
    const store = indexedDBKeyStore({ name: freshDatabase().name, timeout: 500 });
    onTestFinished(() => store.close());
    const head = headOf(refOf('name:a'));
    await store.commit([begin(head)]);
    const listen = vi.spyOn(IDBTransaction.prototype, 'addEventListener').mockImplementation(function (this: IDBTransaction, ...args: Parameters<EventTarget['addEventListener']>) {
      if (this.mode === 'readwrite' && args[0] === 'complete' && lost-- > 0) return;
      EventTarget.prototype.addEventListener.apply(this, args);
    } as IDBTransaction['addEventListener']);
    expect(await store.commit([settle(head), begin(headOf(refOf('name:b')))])).toEqual([{ kind: 'ok' }, { kind: 'ok' }]);
    expect(listen).toHaveBeenCalled();
    expect(await store.get(head)).toEqual(settle(head).next);
  });

  it('C42: a quota that aborts a batch costs only the write that is too large', async () => {
    const put = original(IDBObjectStore.prototype, 'put');
    const add = original(IDBObjectStore.prototype, 'add');
    const full = (request: IDBRequest, value: TestHead): IDBRequest => {
      if ((value.request?.byteLength ?? 0) < 10_000) return request;
      // As browsers do it: the request succeeds, then the whole transaction is aborted for its size.
      Object.defineProperty(request.transaction, 'error', { value: new DOMException('The quota has been exceeded.', 'QuotaExceededError') });
      request.addEventListener('success', () => request.transaction?.abort());
      return request;
    };
    vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (this: IDBObjectStore, ...args) {
      return full(put(this, args), args[0] as TestHead) as IDBRequest<IDBValidKey>;
    });
    vi.spyOn(IDBObjectStore.prototype, 'add').mockImplementation(function (this: IDBObjectStore, ...args) {
      return full(add(this, args), args[0] as TestHead) as IDBRequest<IDBValidKey>;
    });
    const store = open();
    const heads = times(7, at => headOf(refOf(`name:${at}`), { request: bytes(at === 3 ? 20_000 : 20) }));
    const results = await store.commit(heads.map(begin));
    expect(kindsOf(results)).toEqual(['ok', 'ok', 'ok', 'failed', 'ok', 'ok', 'ok']);
    expect(results[3]).toMatchObject({ error: { code: 'STORE_FULL' } });
    expect(await readAll(store, 'open', 10)).toHaveLength(6);
  });

  it('C46: without storage a begin is refused with a typed error, and nothing is called done', async () => {
    const store = indexedDBKeyStore({ factory: () => undefined });
    await expect(store.commit([begin(headOf(refOf('name:a')))])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(store.scan({ client: CLIENT, shelf: 'open', limit: 10 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  it('C53: heads that two pages begin at the same time are all there', async () => {
    const { name } = freshDatabase();
    const stores = [open(name), open(name)];
    await Promise.all(stores.flatMap((store, tab) => times(50, at => store.commit([begin(headOf(refOf(`name:${tab}:${at}`)))]))));
    expect(await readAll(stores[0] as KeyStore, 'open', 200)).toHaveLength(100);
  });

  it('reads 200 open heads beside 20,000 settled ones without meeting a settled one', { timeout: 120_000 }, async () => {
    const { name, raw } = freshDatabase();
    const store = open(name);
    await store.commit(times(200, at => begin(headOf(refOf(`name:open:${at}`), { due: START + at }))));
    await raw(rows => {
      for (let at = 0; at < 20_000; at++) {
        const head = headOf(refOf(`name:done:${at}`), { shelf: 'settled', due: START + at, response: bytes(50) });
        rows.put(head, [head.client, head.scope, head.id]);
      }
    });
    const steps = vi.spyOn(IDBCursor.prototype, 'continue');
    const reads = vi.spyOn(IDBObjectStore.prototype, 'get');
    const bulk = [vi.spyOn(IDBObjectStore.prototype, 'getAll'), vi.spyOn(IDBIndex.prototype, 'getAll')];
    const found = await readAll(store, 'open', 100);
    expect(found).toHaveLength(200);
    expect(new Set(found.map(({ shelf }) => shelf))).toEqual(new Set(['open']));
    expect(steps.mock.calls.length).toBeLessThanOrEqual(200);
    expect(reads.mock.calls.length).toBe(200);
    for (const spy of bulk) expect(spy).not.toHaveBeenCalled();
  });
});

describe('the owner of an indexedDBKeyStore', () => {
  const persisted = (type: string): boolean => dispatchEvent(new PageTransitionEvent(type, { persisted: true }));

  it('C50: lets go while its page sleeps in the back/forward cache, and is the same when it wakes', async () => {
    const { name } = freshDatabase();
    const [sleeper, other] = [open(name), open(name)];
    const owner = await sleeper.owner();
    persisted('pagehide');
    await vi.waitFor(async () => expect(await other.liveness(owner)).toBe('dead'));
    persisted('pageshow');
    await vi.waitFor(async () => expect(await other.liveness(owner)).toBe('alive'));
    expect(await sleeper.owner()).toBe(owner);
  });

  it('C50: cannot be told dead or alive where there are no Web Locks', async () => {
    const store = indexedDBKeyStore({ name: freshDatabase().name, locks: null });
    expect(await store.liveness(await store.owner())).toBe('unknown');
  });

  it('many who ask at once all learn that it lives, and then that it is dead', async () => {
    const { name } = freshDatabase();
    const [own, other] = [open(name), open(name)];
    const owner = await own.owner();
    const ask = async (): Promise<string[]> => [...new Set(await Promise.all(times(20, () => other.liveness(owner))))];
    expect(await ask()).toEqual(['alive']);
    await own.close();
    expect(await ask()).toEqual(['dead']);
  });
});
