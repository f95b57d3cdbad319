import { get, promisifyRequest } from 'idb-keyval';
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

/** How browsers say that a row is there and its value is lost. */
const LOST: readonly (string | undefined)[] = ['DataError', 'NotReadableError'];

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

/** The head at a place; a value that is lost does not end the transaction for the others. */
const read = <H extends StoredHead>(store: IDBObjectStore, place: Place): Promise<H | undefined> =>
  new Promise((resolve, reject) => {
    const request = store.get(keyOf(place));
    request.onsuccess = () => resolve(decode(place, request.result) as H | undefined);
    request.onerror = event => {
      const { error } = request;
      if (!LOST.includes(error?.name)) return reject(error);
      event.preventDefault();
      event.stopPropagation();
      resolve(unreadable(place, null, String(error)) as H);
    };
  });

const apply = async <H extends StoredHead>(store: IDBObjectStore, { ref, expect, next }: Write<H>, retried: boolean): Promise<WriteResult<H>> => {
  const head = await read<H>(store, ref);
  // The connection died between the commit of a first run and the news of it.
  if (retried && JSON.stringify(head) === JSON.stringify(next)) return OK;
  if ((head?.version ?? 'absent') !== expect) return { kind: 'conflict', head };
  try {
    if (next) store.put(next, keyOf(ref));
    else store.delete(keyOf(ref));
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

/**
 * Heads in IndexedDB, for pages and workers: shared by every tab of the origin, with one transaction for all writes of a
 * turn. A strict commit is flushed to the disk. Nothing is opened before the first call.
 */
export const indexedDBKeyStore = <H extends StoredHead = StoredHead>(options: IndexedDBKeyStoreOptions = {}): KeyStore<H> => {
  const { name = 'samekey', locks } = options;
  const { use, close } = openDatabase({ ...options, name, indexes: { [ORDER]: ORDER_PATH } });
  const owner = pageOwner(locks);
  return batched<H>({
    // Browsers that do not know the option treat every commit as relaxed.
    info: { engine: 'IndexedDB', survives: 'durability' in (globalThis.IDBTransaction?.prototype ?? {}) ? 'power' : 'process', shared: 'origin' },
    get: ref => use('readonly', store => read<H>(store, ref)),
    commit: (writes, durability) =>
      use(
        'readwrite',
        async (store, retried) => {
          const [latest = 0, results] = await Promise.all([promisifyRequest<number | undefined>(store.get(LATEST)), applyAll(store, writes, retried)]);
          const written = writes.map(({ next }, at) => (results[at] === OK && next ? next.writtenAt : 0));
          if (Math.max(...written) > latest) store.put(Math.max(...written), LATEST);
          return results;
        },
        durability,
      ),
    scan: ({ after, dueBy = NEVER, ...query }) =>
      after && after.due > dueBy
        ? Promise.resolve([])
        : use('readonly', async store => {
            const page = await places(store, { ...query, dueBy, ...(after && { after }) });
            return (await Promise.all(page.map(place => read<H>(store, place)))) as H[];
          }),
    owner: () => owner.id(),
    liveness: id => owner.liveness(id),
    latest: async () => (await get<number>(LATEST, use)) ?? 0,
    async close() {
      await owner.release();
      await close();
    },
  });
};
