import { promisifyRequest } from 'idb-keyval';
import { NEVER, type HeadRef, type ScanQuery, type StoredHead } from '../keystore.js';

/** How heads lie in the object store: the value is the head, the key is its ref, and one index keeps the shelves in order. */

/** The index knows where a head is even when its value cannot be read. */
export type Place = HeadRef & Partial<Pick<StoredHead, 'shelf' | 'due'>>;

type Row = Partial<StoredHead> | null | undefined;

/** Open and settled heads lie in ranges of their own, so that a scan of one never meets the other. */
const ORDER = 'order';

export const INDEXES: Readonly<Record<string, string[]>> = { [ORDER]: ['client', 'shelf', 'due', 'scope', 'id'] };

/** How browsers say that a row is there and its value is lost. */
const LOST: readonly unknown[] = ['DataError', 'NotReadableError'];

/** How `add` says that there is a row already. */
const TAKEN: readonly unknown[] = ['ConstraintError'];

export const keyOf = ({ client, scope, id }: HeadRef): string[] => [client, scope, id];

/** Waits for a request. An error of a tolerated name is an answer too, and does not end the transaction for the others. */
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

/** The head at a place, or what stands for it when its value is lost. */
export const read = async <H extends StoredHead>(store: IDBObjectStore, place: Place): Promise<H | undefined> => {
  const { result: row, error } = await outcome<Row>(store.get(keyOf(place)), LOST);
  const whole = !error && (row === undefined || isHead(row));
  return (whole ? row : unreadable(place, row, error ? String(error) : 'numbers that every head has are missing')) as H | undefined;
};

/** Whether there was nothing at its ref, so that the head is there now. */
export const add = async (store: IDBObjectStore, head: StoredHead): Promise<boolean> => !(await outcome(store.add(head, keyOf(head)), TAKEN)).error;

/** How many open heads a client has: a count over the index, no value is read. */
export const countOpen = (store: IDBObjectStore, client: string): Promise<number> =>
  promisifyRequest(store.index(ORDER).count(IDBKeyRange.bound([client, 'open'], [client, 'open', []])));

/** The places of one page of a shelf, from the index alone: heads of other scopes cost a key each. */
export const places = (store: IDBObjectStore, { client, shelf, scope, dueBy = NEVER, after, limit }: ScanQuery): Promise<Place[]> =>
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
