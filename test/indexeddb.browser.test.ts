import { get, promisifyRequest, set, setMany, update } from 'idb-keyval';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Clock } from '../src/clock.js';
import { isSamekeyError } from '../src/errors.js';
import { openDatabase, type DatabaseOptions } from '../src/indexeddb.js';

const TIMEOUT_MS = 10_000;

/** A clock that stands still until the test lets the sleeps of some length end. */
const standingClock = () => {
  const sleeps: { readonly ms: number; end(): void }[] = [];
  const clock: Clock = {
    now: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        sleeps.push({ ms, end: resolve });
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      }),
  };
  const pass = (ms: number): void => sleeps.filter(sleep => sleep.ms === ms).forEach(sleep => sleep.end());
  return { clock, pass };
};

/** IndexedDB that counts opens and hands out the connections it gave. */
const watched = () => {
  const connections: IDBDatabase[] = [];
  const open = vi.fn((name: string) => {
    const request = indexedDB.open(name);
    request.addEventListener('success', () => connections.push(request.result));
    return request;
  });
  return { connections, open, factory: () => ({ open, databases: () => indexedDB.databases() }) as unknown as IDBFactory };
};

const freshName = (): string => {
  const name = `test-${crypto.randomUUID()}`;
  onTestFinished(() => void indexedDB.deleteDatabase(name));
  return name;
};

const database = (options: Partial<DatabaseOptions> = {}) => {
  const db = openDatabase({ name: freshName(), ...options });
  onTestFinished(() => db.close());
  return db;
};

const failureOf = (work: Promise<unknown>): Promise<unknown> => work.then(() => expect.unreachable('it should have failed'), (error: unknown) => error);

afterEach(() => void vi.restoreAllMocks());

describe('a database', () => {
  it('serves the functions of idb-keyval, and keeps what they wrote over a close', async () => {
    const { use, close } = database();
    await set('a', 1, use);
    await setMany([['b', 2], ['c', 3]], use);
    await update<number>('a', (old = 0) => old + 10, use);
    await close();
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(key => get(key, use)))).toEqual([11, 2, 3, undefined]);
  });

  it('opens once for ten first calls at a time (C40)', async () => {
    const { open, factory } = watched();
    const { use } = database({ factory });
    await Promise.all(Array.from({ length: 10 }, (_, at) => set(at, at, use)));
    expect(open).toHaveBeenCalledTimes(1);
  });

  it('opens nothing before the first call', async () => {
    const { open, factory } = watched();
    database({ factory });
    expect(open).not.toHaveBeenCalled();
  });

  it('takes part in a transaction as a whole or not at all: a value that cannot be cloned undoes the ones before it', async () => {
    const { use } = database();
    await failureOf(setMany([['a', 1], ['b', () => 2]], use));
    expect(await get('a', use)).toBeUndefined();
    await set('a', 3, use);
    expect(await get('a', use)).toBe(3);
  });
});

describe('a database that does not open', () => {
  it('C39: an open that never answers fails within the limit, later calls open anew, and a late success is closed', async () => {
    const { clock, pass } = standingClock();
    const real = watched();
    const silent: { result?: IDBDatabase; onsuccess?: () => void } = {};
    const open = vi.fn().mockReturnValueOnce(silent).mockImplementation(real.open);
    const name = freshName();
    const { use } = database({ name, clock, factory: () => ({ open, databases: async () => [] }) as unknown as IDBFactory });

    const waiting = [failureOf(get('a', use)), failureOf(get('b', use))];
    await vi.waitFor(() => expect(open).toHaveBeenCalledTimes(1));
    pass(TIMEOUT_MS);
    for (const error of await Promise.all(waiting)) {
      expect(isSamekeyError(error, 'STORE_UNAVAILABLE') && error.message).toMatch(/nothing heard for 10000 ms.*close its other tabs/);
    }
    expect(await get('a', use)).toBeUndefined();
    expect(open).toHaveBeenCalledTimes(2);

    silent.result = await promisifyRequest(indexedDB.open(name));
    silent.onsuccess?.();
    await vi.waitFor(() => expect(() => silent.result?.transaction('rows')).toThrow(/clos/));
    expect(await get('a', use)).toBeUndefined();
  });

  it('C39: names that are never listed do not keep it from opening', async () => {
    const { use } = database({ factory: () => ({ open: (name: string) => indexedDB.open(name), databases: () => new Promise(() => {}) }) as unknown as IDBFactory });
    await set('a', 1, use);
    expect(await get('a', use)).toBe(1);
  });

  it('C40: an upgrade that another tab blocks is an error within the limit; when it ends the next call works, and the rows are there', async () => {
    const name = freshName();
    const { use, close } = database({ name, timeout: 300 });
    await set('a', 1, use);
    await close();
    const stubborn = await promisifyRequest(indexedDB.open(name));
    const upgrade = indexedDB.open(name, 2);
    await new Promise(resolve => (upgrade.onblocked = resolve));

    const error = await failureOf(get('a', use));
    expect(isSamekeyError(error, 'STORE_UNAVAILABLE')).toBe(true);
    stubborn.close();
    (await promisifyRequest(upgrade)).close();
    expect(await get('a', use)).toBe(1);
  });

  it.each([
    ['a factory whose mention throws', () => { throw new DOMException('The operation is insecure.', 'SecurityError'); }],
    ['no indexedDB at all', () => undefined],
    ['an open that throws', () => ({ databases: async () => [], open: () => { throw new DOMException('denied', 'SecurityError'); } })],
    ['an open that ends with InvalidStateError', () => ({
      databases: () => Promise.reject(new Error('private')),
      open: () => {
        const request = { error: new DOMException('A mutation operation was attempted on a database that did not allow mutations.', 'InvalidStateError'), onerror: () => {} };
        queueMicrotask(() => request.onerror());
        return request;
      },
    })],
  ])('C46: %s is a StoreUnavailableError that says what to do', async (_, factory) => {
    // Where a page has no storage its frames have none either; a template has no window at all.
    vi.spyOn(document, 'createElement').mockReturnValue(document.createElement('template'));
    const { use } = database({ factory: factory as unknown as () => IDBFactory });
    for (const error of await Promise.all([failureOf(get('a', use)), failureOf(set('a', 1, use))])) {
      expect(isSamekeyError(error, 'STORE_UNAVAILABLE') && error.message).toMatch(/cannot be used \(.+\)\. Allow site data/);
    }
  });
});

describe('a connection that is lost', () => {
  it('C40: a deletion by another tab is not blocked, and the next call finds an empty database', async () => {
    const name = freshName();
    const { use } = database({ name });
    await set('a', 1, use);
    const request = indexedDB.deleteDatabase(name);
    const onblocked = (request.onblocked = vi.fn());
    await promisifyRequest(request);
    expect(onblocked).not.toHaveBeenCalled();
    expect(await get('a', use)).toBeUndefined();
    await set('a', 2, use);
    expect(await get('a', use)).toBe(2);
  });

  it('C40: an upgrade by another tab is not blocked, and the next call reads the rows in the newer version', async () => {
    const name = freshName();
    const { use } = database({ name });
    await set('a', 1, use);
    const request = indexedDB.open(name, 7);
    const onblocked = (request.onblocked = vi.fn());
    (await promisifyRequest(request)).close();
    expect(onblocked).not.toHaveBeenCalled();
    expect(await get('a', use)).toBe(1);
  });

  it('is opened again when it was closed under the store', async () => {
    const { connections, open, factory } = watched();
    const { use } = database({ factory });
    await set('a', 1, use);
    connections[0]?.close();
    expect(await Promise.all([get('a', use), get('a', use), set('b', 2, use)])).toEqual([1, 1, undefined]);
    expect(open).toHaveBeenCalledTimes(2);
  });

  it('is opened again after its close event', async () => {
    const { connections, open, factory } = watched();
    const { use } = database({ factory });
    await set('a', 1, use);
    connections[0]?.dispatchEvent(new Event('close'));
    expect(await get('a', use)).toBe(1);
    expect(open).toHaveBeenCalledTimes(2);
  });

  it('is given up when nothing is heard of a transaction, and the work runs once more, told so', async () => {
    const { clock, pass } = standingClock();
    const { connections, factory } = watched();
    const { use } = database({ clock, factory });
    await set('a', 1, use);
    const [connection] = connections as [IDBDatabase];
    const silent = Object.assign(new EventTarget(), { error: null, objectStore: () => ({}), commit: () => {}, abort: () => {} });
    vi.spyOn(connection, 'transaction').mockReturnValue(silent as unknown as IDBTransaction);
    const runs: boolean[] = [];
    const written = use('readwrite', (store, retried) => {
      runs.push(retried);
      if (retried) store.put(2, 'a');
    });
    await vi.waitFor(() => expect(runs).toEqual([false]));
    pass(TIMEOUT_MS);
    await written;
    expect(runs).toEqual([false, true]);
    expect(await get('a', use)).toBe(2);
  });

  it('is opened through a fresh frame when the page itself can open nothing any more, as in WebKit', async () => {
    const open = vi.fn(() => {
      throw new DOMException('Connection to Indexed Database server lost. Refresh the page to try again', 'UnknownError');
    });
    const { use, close } = database({ factory: () => ({ open, databases: async () => [] }) as unknown as IDBFactory });
    await set('a', 1, use);
    expect(await get('a', use)).toBe(1);
    expect(open).toHaveBeenCalledTimes(2);
    expect(document.querySelectorAll('iframe[hidden]')).toHaveLength(1);
    await close();
    expect(document.querySelectorAll('iframe[hidden]')).toHaveLength(0);
  });
});

describe('a transaction', () => {
  it('C42: is decided by its end: a quota that aborts it after the success of its request is a StoreFullError', async () => {
    const { connections, factory } = watched();
    const { use } = database({ factory });
    await set('a', 1, use);
    const transaction = Object.assign(new EventTarget(), {
      error: null as DOMException | null,
      objectStore: () => ({
        put: () => {
          const request = { result: 'a', onsuccess: () => {} };
          queueMicrotask(() => request.onsuccess());
          return request;
        },
      }),
      commit: () => {
        transaction.error = new DOMException('The quota has been exceeded.', 'QuotaExceededError');
        queueMicrotask(() => transaction.dispatchEvent(new Event('abort')));
      },
      abort: () => {},
    });
    vi.spyOn(connections[0] as IDBDatabase, 'transaction').mockReturnValueOnce(transaction as unknown as IDBTransaction);
    let succeeded = false;
    const error = await failureOf(use('readwrite', async store => {
      await promisifyRequest(store.put(2, 'a'));
      succeeded = true;
    }));
    expect(succeeded).toBe(true);
    expect(isSamekeyError(error, 'STORE_FULL') && error.message).toMatch(/quota is used up.*call again/);
    expect(await get('a', use)).toBe(1);
  });

  it('C43: ends when something else is awaited inside it, and the request that came too late is an error, not a loss without a word', async () => {
    const { use } = database();
    const error = await failureOf(use('readwrite', async store => {
      store.put(1, 'a');
      await new Promise(resolve => setTimeout(resolve, 50));
      store.put(2, 'b');
    }));
    expect(isSamekeyError(error, 'STORE_UNAVAILABLE')).toBe(true);
    expect((error as Error).cause).toMatchObject({ name: expect.stringMatching(/TransactionInactiveError|InvalidStateError/) as string });
    expect(await get('b', use)).toBeUndefined();
  });

  it('C49: has the durability that was asked for, relaxed by default', async () => {
    const { use } = database();
    const seen: string[] = [];
    for (const durability of ['strict', 'relaxed', undefined] as const) await use('readwrite', store => void seen.push(store.transaction.durability), durability);
    expect(seen).toEqual(['strict', 'relaxed', 'relaxed']);
  });
});
