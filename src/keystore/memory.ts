import { newKey } from '../key.js';
import type { Cursor, HeadRef, KeyStore, ScanQuery, StoredHead, Write, WriteResult } from './keystore.js';
import { NEVER } from './keystore.js';
import { assertStorable } from './storable.js';

/** Heads in memory. Stores made on the same backing see the same heads, as the pages of one origin do. */
export interface MemoryBacking {
  readonly heads: Map<string, StoredHead>;
  /** Each shelf in the order of {@link KeyStore.scan}, all clients one after the other. */
  readonly shelves: Readonly<Record<StoredHead['shelf'], StoredHead[]>>;
  /** Owners that live. Deleting one here is what a crash of its page looks like to the others. */
  readonly owners: Set<string>;
  latest: number;
}

/**
 * A place for heads that outlives the stores on it, for tests that reload a page or open a second tab.
 *
 * @example
 * const backing = memoryBacking();
 * const firstTab = memoryKeyStore({ backing });
 * const secondTab = memoryKeyStore({ backing });
 */
export const memoryBacking = (): MemoryBacking => ({ heads: new Map(), shelves: { open: [], settled: [] }, owners: new Set(), latest: 0 });

export interface MemoryKeyStoreOptions {
  /** Where the heads are. @default a place of its own */
  readonly backing?: MemoryBacking;
}

type Place = Cursor & Pick<StoredHead, 'client'>;

const keyOf = ({ client, scope, id }: HeadRef): string => `${client.length}:${client}${scope.length}:${scope}${id}`;

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

const comparePlaces = (a: Place, b: Place): number =>
  compare(a.client, b.client) || compare(a.due, b.due) || compare(a.scope, b.scope) || compare(a.id, b.id);

/** Where `place` is in the shelf or would have to go. */
const indexOf = (shelf: readonly StoredHead[], place: Place): number => {
  let low = 0;
  let high = shelf.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comparePlaces(shelf[middle] as StoredHead, place) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Bytes can be changed by whoever holds them, so the store and its readers never hold the same ones. */
const copy = <H extends StoredHead>(head: H): H => ({
  ...head,
  request: head.request?.slice(0) ?? null,
  response: head.response?.slice(0) ?? null,
});

const put = ({ heads, shelves }: MemoryBacking, key: string, current: StoredHead | undefined, next: StoredHead | undefined): void => {
  if (current) shelves[current.shelf].splice(indexOf(shelves[current.shelf], current), 1);
  if (!next) return void heads.delete(key);
  heads.set(key, next);
  shelves[next.shelf].splice(indexOf(shelves[next.shelf], next), 0, next);
};

const write = <H extends StoredHead>(backing: MemoryBacking, { ref, expect, next }: Write<H>): WriteResult<H> => {
  const key = keyOf(ref);
  const current = backing.heads.get(key) as H | undefined;
  if ((current?.version ?? 'absent') !== expect) return { kind: 'conflict', head: current && copy(current) };
  put(backing, key, current, next && copy(next));
  if (next) backing.latest = Math.max(backing.latest, next.writtenAt);
  return { kind: 'ok' };
};

/** A write that cannot be kept fails alone. */
const attempt = <H extends StoredHead>(backing: MemoryBacking, one: Write<H>): WriteResult<H> => {
  try {
    if (one.next) assertStorable(one.next);
    return write(backing, one);
  } catch (error) {
    return { kind: 'failed', error };
  }
};

const page = (shelf: readonly StoredHead[], { client, scope, dueBy = NEVER, after, limit }: ScanQuery): StoredHead[] => {
  const found: StoredHead[] = [];
  const start: Place = { client, due: -Infinity, scope: '', id: '', ...after };
  for (let at = indexOf(shelf, start); at < shelf.length && found.length < limit; at++) {
    const head = shelf[at] as StoredHead;
    if (head.client !== client || head.due > dueBy) break;
    const isCursor = after !== undefined && comparePlaces(head, start) === 0;
    if (!isCursor && (scope === undefined || head.scope === scope)) found.push(copy(head));
  }
  return found;
};

/**
 * Heads in memory: for tests, and for code that opts out of surviving a restart. It survives nothing. An owner of it
 * lives until its store is closed.
 */
export const memoryKeyStore = <H extends StoredHead = StoredHead>(options: MemoryKeyStoreOptions = {}): KeyStore<H> => {
  const { backing = memoryBacking() } = options;
  let own: string | undefined;
  // There is no transaction to share, so nothing is gained by waiting for the others of a turn.
  return {
    info: { engine: 'memory', survives: 'none', shared: 'instance' },
    get: async ref => {
      const head = backing.heads.get(keyOf(ref));
      return head && (copy(head) as H);
    },
    commit: async writes => writes.map(one => attempt(backing, one)),
    scan: async query => page(backing.shelves[query.shelf], query) as H[],
    countOpen: async client => {
      const place = { client, scope: '', id: '' };
      return indexOf(backing.shelves.open, { ...place, due: Infinity }) - indexOf(backing.shelves.open, { ...place, due: -Infinity });
    },
    owner: async () => {
      own ??= `memory:${newKey()}`;
      backing.owners.add(own);
      return own;
    },
    liveness: async owner => (backing.owners.has(owner) ? 'alive' : owner.startsWith('memory:') ? 'dead' : 'unknown'),
    latest: async () => backing.latest,
    close: async () => {
      if (own !== undefined) backing.owners.delete(own);
      own = undefined;
    },
  };
};
