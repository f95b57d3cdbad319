/** The identity of a head: one row per (client, scope, id). */
export interface HeadRef {
  readonly client: string;
  readonly scope: string;
  /** `name:…`, `key:…` or `anon:…`. */
  readonly id: string;
}

/**
 * What a store must know of a head to keep it in order; all further fields are plain JSON that it keeps as they are.
 * Stores know no states: the transition table of `operation.ts` decides what is open and when it is due.
 */
export interface StoredHead extends HeadRef {
  /** What a write compares. Begins at the time of the first write and grows by 1, so that a head which was deleted and begun again never repeats one. */
  readonly version: number;
  /** Open heads are what start-up and resume read; settled ones are found by their ref and by tidying only. */
  readonly shelf: 'open' | 'settled';
  /** ms since the epoch. Open: when a driver should look next. Settled: when something of it may be dropped. {@link NEVER} sorts last. */
  readonly due: number;
  /** Wall time of the writer, ms since the epoch; the source of {@link KeyStore.latest}. */
  readonly writtenAt: number;
  /** Version of the record's format; a driver leaves one it does not know alone. */
  readonly format: number;
  /** Set by a store that found the row but cannot decode it: why. Corrupt is not absent; only the fields of this interface hold then. */
  readonly unreadable?: string;
  /** Bytes of the request body; null where there is none. */
  readonly request: ArrayBuffer | null;
  /** Bytes of the answer's body; null where there is none. */
  readonly response: ArrayBuffer | null;
}

/** A due time that never comes. */
export const NEVER: number = Number.MAX_SAFE_INTEGER;

/** One compare-and-set. */
export interface Write<H extends StoredHead = StoredHead> {
  readonly ref: HeadRef;
  /** What must be there now: nothing, or the head with this version. */
  readonly expect: 'absent' | number;
  /** What is there afterwards; undefined deletes. */
  readonly next: H | undefined;
}

export type WriteResult<H extends StoredHead = StoredHead> =
  | { readonly kind: 'ok' }
  /** Somebody else wrote first; `head` is what is there now. Nothing was changed by this write. */
  | { readonly kind: 'conflict'; readonly head: H | undefined }
  /** This write alone could not be done (too large, not storable); its neighbours were. */
  | { readonly kind: 'failed'; readonly error: unknown };

/**
 * `strict`: acknowledged when it would survive loss of power, as far as the platform can promise that.
 * `relaxed`: acknowledged when it would survive the end of this process; it is flushed with the next strict commit.
 */
export type Durability = 'strict' | 'relaxed';

/** A place in the order (due, scope, id) of a shelf. */
export type Cursor = Pick<StoredHead, 'due' | 'scope' | 'id'>;

export interface ScanQuery {
  readonly client: string;
  readonly shelf: 'open' | 'settled';
  readonly scope?: string;
  /** Only heads with due <= dueBy; ms since the epoch. @default NEVER */
  readonly dueBy?: number;
  /** Only heads after this place. */
  readonly after?: Cursor;
  readonly limit: number;
}

/** What truly survives, and who sees the same heads. */
export interface StoreInfo {
  /** Name of the engine, for messages. */
  readonly engine: string;
  /** What a strict commit survives: the end of nothing ('none'), of the process, of the operating system. */
  readonly survives: 'none' | 'process' | 'power';
  /** Who shares the heads: this object only, every page of the origin, every process on the host, a fleet. */
  readonly shared: 'instance' | 'origin' | 'host' | 'fleet';
}

/**
 * Durable heads with compare-and-set. Make one with `indexedDBKeyStore`, `fileKeyStore` or `memoryKeyStore`, or write a
 * driver and wrap it in `batched` (see CONTRIBUTING, "Add a store"). Every method may open the store, within a bounded time, and rejects
 * with `StoreUnavailableError`, `StoreFullError` or `StoreCorruptError`; none hangs.
 */
export interface KeyStore<H extends StoredHead = StoredHead> {
  readonly info: StoreInfo;
  get(ref: HeadRef): Promise<H | undefined>;
  /** All writes given in one turn of the event loop share a transaction; the answers are in the order of `writes`. */
  commit(writes: readonly Write<H>[], durability?: Durability): Promise<WriteResult<H>[]>;
  /** One page of a shelf, ordered by (due, scope, id). Reading open heads costs nothing for settled ones. */
  scan(query: ScanQuery): Promise<H[]>;
  /** How many open heads a client has, without reading them. */
  countOpen(client: string): Promise<number>;
  /** Who this process or page is, as an owner of leases. The name is held by something that the platform releases when the owner dies. */
  owner(): Promise<string>;
  /** Whether an owner still lives. `unknown` where the platform cannot tell; leases then end by time alone. */
  liveness(owner: string): Promise<'alive' | 'dead' | 'unknown'>;
  /** The highest wall time that any writer of this store has had, ms; 0 for an empty store. It betrays a clock that was set back. */
  latest(): Promise<number>;
  /** Flushes and releases everything. A later call opens the store again. */
  close(): Promise<void>;
}
