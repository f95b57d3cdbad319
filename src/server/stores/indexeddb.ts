import { promisifyRequest } from 'idb-keyval';
import { systemClock, type Clock } from '../../clock.js';
import { openDatabase } from '../../indexeddb.js';
import type { DedupRecord, RecordRef, Tidied } from '../record.js';
import type { OwnedDedupStore } from '../store.js';
import { isChange, rowStore, type Rows } from '../row-store.js';

export interface IndexedDBDedupStoreOptions {
  /** Name of the IndexedDB database. @default 'samekey-dedup' */
  readonly name?: string | undefined;
  /** Whose time leases and expiry follow; all pages on one database should share it. @default systemClock */
  readonly clock?: Clock | undefined;
}

const rowKey = ({ scope, key }: RecordRef): IDBValidKey => ['row', scope, key];

// Arrays sort by their elements, and an array after every string and number: these bounds enclose all keys with the prefix.
const allOf = (prefix: 'row' | 'journal'): IDBKeyRange => IDBKeyRange.bound([prefix], [prefix, []]);

/** Visits values one by one, so that a large table never is in memory as a whole. Stops when `visit` says false. */
const walk = (store: IDBObjectStore, range: IDBKeyRange, visit: (cursor: IDBCursorWithValue) => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = store.openCursor(range);
    request.onerror = () => reject(request.error as DOMException);
    request.onsuccess = () => {
      const cursor = request.result;
      if (cursor && visit(cursor)) cursor.continue();
      else resolve();
    };
  });

const lastJournalKey = async (store: IDBObjectStore): Promise<number> => {
  const cursor = await promisifyRequest(store.openKeyCursor(allOf('journal'), 'prev'));
  const key = cursor?.key as [string, number] | undefined;
  return key?.[1] ?? 0;
};

const tidyRows = async (store: IDBObjectStore, decide: (row: DedupRecord) => Tidied, limit: number): Promise<Tidied[]> => {
  const done: Tidied[] = [];
  let left = limit;
  await walk(store, allOf('row'), cursor => {
    const tidied = decide(cursor.value as DedupRecord);
    if (tidied.kind === 'kept') return true;
    done.push(tidied);
    if (tidied.kind === 'deleted') cursor.delete();
    if ('next' in tidied) cursor.update(tidied.next);
    return !isChange(tidied) || --left > 0;
  });
  return done;
};

/**
 * A dedup table in the page's IndexedDB, shared by all tabs of the origin, so that a mock still knows after a reload what
 * it has executed. It rejects with `StoreUnavailableError` or `StoreFullError`; nothing opens before the first use.
 */
export const indexedDBDedupStore = ({ name = 'samekey-dedup', clock = systemClock }: IndexedDBDedupStoreOptions = {}): OwnedDedupStore & {
  close(): Promise<void>;
} => {
  const database = openDatabase({ name });
  const rows: Rows = {
    get: ref => database.use('readonly', store => promisifyRequest(store.get(rowKey(ref)) as IDBRequest<DedupRecord | undefined>)),
    update: (ref, change) =>
      database.use('readwrite', async store => {
        const row = await promisifyRequest(store.get(rowKey(ref)) as IDBRequest<DedupRecord | undefined>);
        const { next, result } = change(row, clock.now());
        if (next) store.put(next, rowKey(ref));
        return result;
      }),
    tidy: (tidy, limit) => database.use('readwrite', store => tidyRows(store, row => tidy(row, clock.now()), limit)),
  };
  return {
    ...rowStore(rows),
    journal: {
      append: entry => database.use('readwrite', async store => void store.put(entry, ['journal', (await lastJournalKey(store)) + 1])),
      read: () => database.use('readonly', store => promisifyRequest(store.getAll(allOf('journal')) as IDBRequest<object[]>)),
    },
    clear: () => database.use('readwrite', store => void store.clear()),
    close: () => database.close(),
  };
};
