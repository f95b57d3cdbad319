import { get } from 'idb-keyval';
import type { Clock } from '../clock.js';
import { openDatabase, type Work } from '../indexeddb.js';
import { pageOwner } from './indexeddb/page-owner.js';
import { batched } from './batcher.js';
import { META, applyAll, newMemory, type Meta } from './indexeddb/commit.js';
import { INDEXES, countOpen, places, read } from './indexeddb/rows.js';
import { NEVER, type KeyStore, type StoredHead } from './keystore.js';

export interface IndexedDBKeyStoreOptions {
  /** Name of the database. Stores of one name share their heads in every page and worker of the origin. @default 'samekey' */
  readonly name?: string;
  /** ms until a database that does not answer counts as dead. @default 10_000 */
  readonly timeout?: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /** Asked at every open. @default () => globalThis.indexedDB */
  readonly factory?: () => IDBFactory | undefined;
  /** null where owners shall not be told alive or dead. @default navigator.locks, which pages on plain http do not have */
  readonly locks?: LockManager | null;
}

/**
 * Heads in IndexedDB, for pages and workers: shared by every tab of the origin, with one transaction for all writes of a
 * turn. A strict commit is flushed to the disk. Nothing is opened before the first call.
 */
export const indexedDBKeyStore = <H extends StoredHead = StoredHead>(options: IndexedDBKeyStoreOptions = {}): KeyStore<H> => {
  const { name = 'samekey', locks } = options;
  const { use, close } = openDatabase({ ...options, name, indexes: INDEXES });
  const owner = pageOwner(locks);
  const memory = newMemory<H>();
  return batched<H>({
    // Browsers that do not know the option treat every commit as relaxed.
    info: { engine: 'IndexedDB', survives: 'durability' in (globalThis.IDBTransaction?.prototype ?? {}) ? 'power' : 'process', shared: 'origin' },
    get: ref => use('readonly', store => read<H>(store, ref)),
    async commit(writes, durability) {
      try {
        return await use('readwrite', (store, retried) => applyAll(store, writes, memory, retried), durability);
      } catch (error) {
        memory.versions.clear();
        throw error;
      } finally {
        memory.lost.clear();
      }
    },
    async scan({ dueBy = NEVER, ...query }) {
      if (query.after && query.after.due > dueBy) return [];
      const work: Work<(H | undefined)[]> = async store => Promise.all((await places(store, { ...query, dueBy })).map(place => read<H>(store, place)));
      return (await use('readonly', work)) as H[];
    },
    countOpen: client => use('readonly', store => countOpen(store, client)),
    owner: () => owner.id(),
    liveness: id => owner.liveness(id),
    latest: async () => (await get<Meta>(META, use))?.latest ?? 0,
    async close() {
      await owner.release();
      await close();
    },
  });
};
