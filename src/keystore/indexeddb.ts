import { get } from 'idb-keyval';
import type { Clock } from '../clock.js';
import { openDatabase } from '../indexeddb.js';
import { pageOwner } from '../page-owner.js';
import { batched } from './batcher.js';
import { NEVER, type HeadRef, type KeyStore, type ScanQuery, type StoredHead, type Write, type WriteResult } from './keystore.js';

export interface IndexedDBKeyStoreOptions {
  /** Name of the database. Stores of one name share their heads in every page and worker of the origin. @default 'samekey' */
  readonly name?: string;
  /** ms until a database that does not answer counts as dead. @default 10_000 */
  readonly timeout?: number;
  readonly clock?: Clock;
  /** Where IndexedDB comes from. @default () => globalThis.indexedDB */
  readonly factory?: () => IDBFactory | undefined;
  /** Where Web Locks come from. @default navigator.locks */
  readonly locks?: LockManager | undefined;
}

/** The index knows where a head is even when its value cannot be read. */
type Place = HeadRef & Partial<Pick<StoredHead, 'shelf' | 'due'>>;

/** The order of a shelf. Open and settled heads lie in ranges of their own, so that a scan of one never meets the other. */
const ORDER = 'order';
const ORDER_PATH = ['client', 'shelf', 'due', 'scope', 'id'];

/** Key of the highest `writtenAt` so far. Heads have arrays as keys, so it is none of theirs. */
const LATEST = 'latest';

/** It is noted once in so many ms. A clock that was set back by less changes nothing: key windows are guarded by minutes. */
const LATEST_STEP_MS = 1000;

/** How browsers say that a row is there and its value is lost. */
const LOST: readonly unknown[] = ['DataError', 'NotReadableError'];

/** How an `add` says that there is a row already. */
const TAKEN: readonly unknown[] = ['ConstraintError'];

const OK = { kind: 'ok' } as const;

const keyOf = ({ client, scope, id }: HeadRef): string[] => [client, scope, id];

type Row = Partial<StoredHead> | null | undefined;

const isHead = (row: Row): boolean => [row?.version, row?.due, row?.writtenAt, row?.format].every(Number.isFinite);

const finite = (value: unknown): number => (Number.isFinite(value) ? (value as number) : 0);

/** Stands for a row that is damaged, or whose value is lost, with what is left of it. */
const unreadable = (place: Place, row: Row, why: string): StoredHead => ({
  shelf: row?.shelf === 'settled' ? 'settled' : 'open',
  due: finite(row?.due),
  ...place,
  version: finite(row?.version),
  writtenAt: finite(row?.writtenAt),
  format: finite(row?.format),
  request: null,
  response: null,
  unreadable: why,
});

const decode = (place: Place, row: Row): Row => (row === undefined || isHead(row) ? row : unreadable(place, row, 'numbers that every head has are missing'));

/** Waits for a request; an error of a tolerated name is an answer too, and does not end the transaction for the others. */
const outcome = <T>(request: IDBRequest<T>, tolerated: readonly unknown[]): Promise<{ readonly result?: T; readonly error?: DOMException }> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve({ result: request.result });
    request.onerror = event => {
      const error = request.error as DOMException;
      if (!tolerated.includes(error.name)) return reject(error);
      event.preventDefault();
      event.stopPropagation();
      resolve({ error });
    };
  });

const read = async <H extends StoredHead>(store: IDBObjectStore, place: Place): Promise<H | undefined> => {
  const { result, error } = await outcome<Row>(store.get(keyOf(place)), LOST);
  return (error ? unreadable(place, null, String(error)) : decode(place, result)) as H | undefined;
};

const apply = async <H extends StoredHead>(store: IDBObjectStore, { ref, expect, next }: Write<H>, retried: boolean): Promise<WriteResult<H>> => {
  const key = keyOf(ref);
  try {
    // One request instead of two, which is what most begins cost.
    if (next && expect === 'absent' && !(await outcome(store.add(next, key), TAKEN)).error) return OK;
    const head = await read<H>(store, ref);
    // The connection died between the commit of a first run and the news of it.
    if (retried && JSON.stringify(head) === JSON.stringify(next)) return OK;
    if ((head?.version ?? 'absent') !== expect) return { kind: 'conflict', head };
    if (next) store.put(next, key);
    else store.delete(key);
    return OK;
  } catch (error) {
    return { kind: 'failed', error };
  }
};

/** Every write waits for those before it of the same head only, so that requests are under way together. */
const applyAll = <H extends StoredHead>(store: IDBObjectStore, writes: readonly Write<H>[], retried: boolean): Promise<WriteResult<H>[]> => {
  const last = new Map<string, Promise<unknown>>();
  return Promise.all(
    writes.map(async write => {
      const key = JSON.stringify(keyOf(write.ref));
      const result = Promise.resolve(last.get(key)).then(() => apply(store, write, retried));
      last.set(key, result);
      return result;
    }),
  );
};

/** The places of one page of a shelf, from the index alone: heads of other scopes cost a key each. */
const places = (store: IDBObjectStore, { client, shelf, scope, dueBy = NEVER, after, limit }: ScanQuery): Promise<Place[]> =>
  new Promise((resolve, reject) => {
    const found: Place[] = [];
    const start = after ? [client, shelf, after.due, after.scope, after.id] : [client, shelf];
    // An array sorts after every string, so this is behind the last scope of that due time.
    const range = IDBKeyRange.bound(start, [client, shelf, dueBy, []], after !== undefined);
    const request = store.index(ORDER).openKeyCursor(range);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor || found.length >= limit) return resolve(found);
      const [, , due, owner, id] = cursor.key as [string, string, number, string, string];
      if (scope === undefined || scope === owner) found.push({ client, shelf, due, scope: owner, id });
      cursor.continue();
    };
  });

/** Notes the highest wall time of the writes that were done, and returns it. */
const noteLatest = async <H extends StoredHead>(store: IDBObjectStore, writes: readonly Write<H>[], results: readonly WriteResult<H>[], noted: number): Promise<number> => {
  const highest = writes.reduce((time, { next }, at) => (results[at] === OK && next ? Math.max(time, next.writtenAt) : time), 0);
  if (highest < noted + LATEST_STEP_MS) return noted;
  const { result = 0 } = await outcome<number | undefined>(store.get(LATEST), []);
  if (highest > result) store.put(highest, LATEST);
  return highest;
};

/**
 * Heads in IndexedDB, for pages and workers: shared by every tab of the origin, with one transaction for all writes of a
 * turn. A strict commit is flushed to the disk. Nothing is opened before the first call.
 */
export const indexedDBKeyStore = <H extends StoredHead = StoredHead>(options: IndexedDBKeyStoreOptions = {}): KeyStore<H> => {
  const { name = 'samekey', locks } = options;
  const { use, close } = openDatabase({ ...options, name, indexes: { [ORDER]: ORDER_PATH } });
  const owner = pageOwner(locks);
  let noted = 0;
  return batched<H>({
    // Browsers that do not know the option treat every commit as relaxed.
    info: { engine: 'IndexedDB', survives: 'durability' in (globalThis.IDBTransaction?.prototype ?? {}) ? 'power' : 'process', shared: 'origin' },
    get: ref => use('readonly', store => read<H>(store, ref)),
    async commit(writes, durability) {
      const work = async (store: IDBObjectStore, retried: boolean) => {
        const results = await applyAll(store, writes, retried);
        return { results, latest: await noteLatest(store, writes, results, noted) };
      };
      const { results, latest } = await use('readwrite', work, durability);
      noted = latest;
      return results;
    },
    async scan({ dueBy = NEVER, ...query }) {
      if (query.after && query.after.due > dueBy) return [];
      const work = async (store: IDBObjectStore) => {
        const page = await places(store, { ...query, dueBy });
        return Promise.all(page.map(place => read<H>(store, place)));
      };
      return (await use('readonly', work)) as H[];
    },
    owner: () => owner.id(),
    liveness: id => owner.liveness(id),
    latest: async () => (await get<number>(LATEST, use)) ?? 0,
    async close() {
      await owner.release();
      await close();
    },
  });
};
