import { clear, createStore, set, update, type UseStore } from 'idb-keyval';
import { indexedDBKeyStore } from '../../src/keystore/indexeddb.js';
import type { KeyStore, StoredHead } from '../../src/keystore/keystore.js';

/** One round: how fast `total` operations begin and settle, `concurrency` at a time. */
export interface Round {
  readonly contender: 'samekey' | 'idb-keyval';
  readonly concurrency: number;
  readonly total: number;
}

export interface Timing {
  readonly operationsPerSecond: number;
  /** ms from the call of begin to its durable answer, median. */
  readonly beginMs: number;
}

type Operation = (at: number, begun: () => void) => Promise<void>;

/** Bodies of 0.3 to 4 KB, log-uniform, the same for every contender. */
const bodyOf = (at: number): ArrayBuffer => new ArrayBuffer(Math.round(300 * (4000 / 300) ** (((at * 61) % 100) / 100)));

const headOf = (at: number): StoredHead & { readonly state: string } => ({
  client: 'bench',
  scope: 'user-1',
  id: `name:order:${at}`,
  version: Date.now(),
  shelf: 'open',
  due: Date.now(),
  writtenAt: Date.now(),
  format: 1,
  state: 'pending',
  request: bodyOf(at),
  response: null,
});

const settled = <H extends StoredHead>(head: H): H => ({ ...head, version: head.version + 1, shelf: 'settled', state: 'succeeded', request: null });

const samekeyOperation =
  (store: KeyStore): Operation =>
  async (at, begun) => {
    const head = headOf(at);
    const [begin] = await store.commit([{ ref: head, expect: 'absent', next: head }], 'strict');
    begun();
    const [settle] = await store.commit([{ ref: head, expect: head.version, next: settled(head) }], 'relaxed');
    if (begin?.kind !== 'ok' || settle?.kind !== 'ok') throw new Error(`${head.id} was not written: ${JSON.stringify([begin, settle])}`);
  };

const keyvalOperation =
  (store: UseStore): Operation =>
  async (at, begun) => {
    const head = headOf(at);
    await set(head.id, head, store);
    begun();
    await update<StoredHead>(head.id, stored => settled(stored ?? head), store);
  };

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const time = async (operation: Operation, { concurrency, total }: Round): Promise<Timing> => {
  const begins: number[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < total; at = next++) {
      const start = performance.now();
      await operation(at, () => begins.push(performance.now() - start));
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: concurrency }, worker));
  return { operationsPerSecond: (total * 1000) / (performance.now() - start), beginMs: median(begins) };
};

const removeDatabase = (name: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error ?? new Error(`${name} could not be deleted`));
  });

/** Runs on an empty database of its own; opening it is not part of the time. */
const run = async (round: Round): Promise<Timing> => {
  const name = `bench-${crypto.randomUUID()}`;
  if (round.contender === 'samekey') {
    const store = indexedDBKeyStore({ name });
    await store.latest();
    const timing = await time(samekeyOperation(store), round);
    await store.close();
    await removeDatabase(name);
    return timing;
  }
  const store = createStore(name, 'rows');
  await clear(store);
  const timing = await time(keyvalOperation(store), round);
  // idb-keyval cannot close its connection, so its database stays until the browser's profile is removed.
  await clear(store);
  return timing;
};

Object.assign(globalThis, { run });
