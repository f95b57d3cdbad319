import { get, promisifyRequest } from 'idb-keyval';
import type { Clock } from '../clock.js';
import { openDatabase, type Work } from '../indexeddb.js';
import { newKey } from '../key.js';
import { pageOwner } from '../page-owner.js';
import { batched } from './batcher.js';
import { INDEXES, add, keyOf, places, read } from './indexeddb-rows.js';
import { NEVER, type KeyStore, type StoredHead, type Write, type WriteResult } from './keystore.js';

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

/** The one row that is no head: who committed last, and the highest `writtenAt` that was noted. */
interface Meta {
  readonly writer: string;
  readonly latest: number;
}

/** Heads have arrays as keys, so it is none of theirs. */
const META = 'meta';

/** Between two notes of the highest time. A clock that was set back by less changes nothing: key windows have minutes to spare. */
const LATEST_STEP_MS = 1000;

const OK = { kind: 'ok' } as const;

type Commit<H extends StoredHead> = (store: IDBObjectStore, writes: readonly Write<H>[], retried: boolean) => Promise<WriteResult<H>[]>;

/** Runs every write after those of the same head before it, and different heads at once. */
const applyEach = <H extends StoredHead>(writes: readonly Write<H>[], apply: (write: Write<H>, key: string) => Promise<WriteResult<H>>): Promise<WriteResult<H>[]> => {
  const last = new Map<string, Promise<unknown>>();
  return Promise.all(
    writes.map(write => {
      const key = JSON.stringify(keyOf(write.ref));
      const result = Promise.resolve(last.get(key)).then(() => apply(write, key)).catch((error: unknown) => ({ kind: 'failed', error }) as const);
      last.set(key, result);
      return result;
    }),
  );
};

/**
 * Compare-and-set of many heads in one transaction. To read a head costs more than to replace it, so the versions that
 * this store wrote are remembered, and believed for as long as `META` says that nobody else committed since.
 */
const committer = <H extends StoredHead>(versions: Map<string, number>): Commit<H> => {
  const writer = newKey();
  return async (store, writes, retried) => {
    const meta = promisifyRequest<Meta | undefined>(store.get(META));
    const apply = async ({ ref, expect, next }: Write<H>, key: string): Promise<WriteResult<H>> => {
      if (next && expect === 'absent' && (await add(store, next))) return remember(key, next);
      const isKnown = !retried && (await meta)?.writer === writer && versions.get(key) === expect;
      const head = isKnown ? undefined : await read<H>(store, ref);
      // The connection died between the commit of a first run and the news of it.
      if (retried && JSON.stringify(head) === JSON.stringify(next)) return OK;
      if (!isKnown && (head?.version ?? 'absent') !== expect) return { kind: 'conflict', head };
      if (next) store.put(next, keyOf(ref));
      else store.delete(keyOf(ref));
      return remember(key, next);
    };
    // Settled heads are rarely written again; without them the memory follows what is open.
    const remember = (key: string, next: H | undefined): typeof OK => {
      if (next?.shelf === 'open') versions.set(key, next.version);
      else versions.delete(key);
      return OK;
    };
    const results = await applyEach(writes, apply);
    const done = writes.filter((_, at) => results[at] === OK);
    const { writer: lastWriter, latest } = (await meta) ?? { latest: 0 };
    const highest = done.reduce((time, { next }) => Math.max(time, next?.writtenAt ?? 0), latest);
    if (lastWriter !== writer) versions.clear();
    if (done.length > 0 && (lastWriter !== writer || highest >= latest + LATEST_STEP_MS)) store.put({ writer, latest: highest } satisfies Meta, META);
    return results;
  };
};

/**
 * Heads in IndexedDB, for pages and workers: shared by every tab of the origin, with one transaction for all writes of a
 * turn. A strict commit is flushed to the disk. Nothing is opened before the first call.
 */
export const indexedDBKeyStore = <H extends StoredHead = StoredHead>(options: IndexedDBKeyStoreOptions = {}): KeyStore<H> => {
  const { name = 'samekey', locks } = options;
  const { use, close } = openDatabase({ ...options, name, indexes: INDEXES });
  const owner = pageOwner(locks);
  const versions = new Map<string, number>();
  const commit = committer<H>(versions);
  return batched<H>({
    // Browsers that do not know the option treat every commit as relaxed.
    info: { engine: 'IndexedDB', survives: 'durability' in (globalThis.IDBTransaction?.prototype ?? {}) ? 'power' : 'process', shared: 'origin' },
    get: ref => use('readonly', store => read<H>(store, ref)),
    async commit(writes, durability) {
      try {
        return await use('readwrite', (store, retried) => commit(store, writes, retried), durability);
      } catch (error) {
        versions.clear();
        throw error;
      }
    },
    async scan({ dueBy = NEVER, ...query }) {
      if (query.after && query.after.due > dueBy) return [];
      const work: Work<(H | undefined)[]> = async store => Promise.all((await places(store, { ...query, dueBy })).map(place => read<H>(store, place)));
      return (await use('readonly', work)) as H[];
    },
    owner: () => owner.id(),
    liveness: id => owner.liveness(id),
    latest: async () => (await get<Meta>(META, use))?.latest ?? 0,
    async close() {
      await owner.release();
      await close();
    },
  });
};
