import { promisifyRequest } from 'idb-keyval';
import { newKey } from '../../key.js';
import { add, keyOf, read } from './rows.js';
import type { StoredHead, Write, WriteResult } from '../keystore.js';

/** The one row that is no head: who committed last, and the highest `writtenAt` that was noted. */
export interface Meta {
  readonly writer: string;
  readonly latest: number;
}

/** Heads have arrays as keys, so it is none of theirs. */
export const META = 'meta';

/** Between two notes of the highest time. A clock that was set back by less changes nothing: key windows have minutes to spare. */
const LATEST_STEP_MS = 1000;

const OK = { kind: 'ok' } as const;

/**
 * What one store remembers between its commits. To read a head costs more than to replace it, so the versions of the open
 * heads that the store wrote itself are believed for as long as `META` says that nobody else committed since.
 */
export interface Memory<H extends StoredHead> {
  readonly writer: string;
  readonly versions: Map<string, number>;
  /** Heads whose value turned out to be lost. Chromium aborts the transaction that met one; its second run must not meet it again. */
  readonly lost: Map<string, H>;
}

export const newMemory = <H extends StoredHead>(): Memory<H> => ({ writer: newKey(), versions: new Map(), lost: new Map() });

interface Run<H extends StoredHead> {
  readonly store: IDBObjectStore;
  readonly memory: Memory<H>;
  readonly meta: Promise<Meta | undefined>;
  readonly retried: boolean;
}

const readOnce = async <H extends StoredHead>({ store, memory: { lost } }: Run<H>, { ref }: Write<H>, key: string): Promise<H | undefined> => {
  const head = lost.get(key) ?? (await read<H>(store, ref));
  if (head?.unreadable) lost.set(key, head);
  return head;
};

const remember = <H extends StoredHead>({ versions }: Memory<H>, key: string, next: H | undefined): typeof OK => {
  // Settled heads are rarely written again; without them the memory follows what is open.
  if (next?.shelf === 'open') versions.set(key, next.version);
  else versions.delete(key);
  return OK;
};

const apply = async <H extends StoredHead>(run: Run<H>, write: Write<H>, key: string): Promise<WriteResult<H>> => {
  const { store, memory, meta, retried } = run;
  const { ref, expect, next } = write;
  if (next && expect === 'absent' && (await add(store, next))) return remember(memory, key, next);
  const isKnown = !retried && (await meta)?.writer === memory.writer && memory.versions.get(key) === expect;
  if (!isKnown) {
    const head = await readOnce(run, write, key);
    // The connection died between the commit of a first run and the news of it.
    if (retried && JSON.stringify(head) === JSON.stringify(next)) return OK;
    if ((head?.version ?? 'absent') !== expect) return { kind: 'conflict', head };
  }
  if (next) store.put(next, keyOf(ref));
  else store.delete(keyOf(ref));
  return remember(memory, key, next);
};

/** Applies every write after those of the same head before it, and different heads at once. */
const applyEach = <H extends StoredHead>(run: Run<H>, writes: readonly Write<H>[]): Promise<WriteResult<H>[]> => {
  const last = new Map<string, Promise<unknown>>();
  return Promise.all(
    writes.map(write => {
      const key = JSON.stringify(keyOf(write.ref));
      const result = Promise.resolve(last.get(key))
        .then(() => apply(run, write, key))
        .catch((error: unknown) => ({ kind: 'failed', error }) as const);
      last.set(key, result);
      return result;
    }),
  );
};

/** Compare-and-set of many heads in the transaction of `store`. */
export const applyAll = async <H extends StoredHead>(store: IDBObjectStore, writes: readonly Write<H>[], memory: Memory<H>, retried: boolean): Promise<WriteResult<H>[]> => {
  const { writer, versions } = memory;
  const meta = promisifyRequest<Meta | undefined>(store.get(META));
  const results = await applyEach({ store, memory, meta, retried }, writes);
  const done = writes.filter((_, at) => results[at] === OK);
  const before = await meta;
  const noted = before?.latest ?? 0;
  const latest = done.reduce((time, { next }) => Math.max(time, next?.writtenAt ?? 0), noted);
  const isOther = before?.writer !== writer;
  if (isOther) versions.clear();
  if (done.length > 0 && (isOther || latest >= noted + LATEST_STEP_MS)) store.put({ writer, latest } satisfies Meta, META);
  return results;
};
