import { promisifyRequest } from 'idb-keyval';
import { systemClock, type Clock } from './clock.js';
import { SamekeyError, StoreFullError, StoreUnavailableError } from './errors.js';
import type { Durability } from './keystore/keystore.js';
import { within } from './within.js';

/**
 * What a transaction does. It must await nothing but requests of `store`, or the transaction commits without the rest.
 *
 * @param retried - the connection died under a first run, whose writes may be there already
 */
export type Work<T> = (store: IDBObjectStore, retried: boolean) => T | PromiseLike<T>;

export interface Database {
  /**
   * idb-keyval's `UseStore` (so its `get`, `setMany`, `update` … work over it) with what that lacks: durability, one
   * explicit commit, a time limit, and a connection that heals. It resolves with what `work` returned once the
   * writes are complete, never at the success of a request: the quota can still abort them then. Rejects with
   * `StoreFullError` when the quota is reached and with `StoreUnavailableError` for all else.
   *
   * @param durability - @default 'relaxed'
   */
  readonly use: <T>(mode: IDBTransactionMode, work: Work<T>, durability?: Durability) => Promise<T>;
  /** Closes the connection after the transactions that run. A later `use` opens it again. */
  readonly close: () => Promise<void>;
}

export interface DatabaseOptions {
  /** Name of the IndexedDB database. It has one object store, whose keys are given with each value. */
  readonly name: string;
  /** Key path by name of index. They are made with the database and never change: a higher version would wait for every open tab. */
  readonly indexes?: Readonly<Record<string, string[]>> | undefined;
  /** ms until an open or a transaction of which nothing is heard counts as dead. @default 10_000 */
  readonly timeout?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** Asked at every open; it may throw where storage is forbidden. @default () => globalThis.indexedDB */
  readonly factory?: (() => IDBFactory | undefined) | undefined;
}

type Limit = <T>(name: string, work: Promise<T>) => Promise<T>;

const STORE = 'rows';

/** Slower disks than this exist only where something hangs, and a caller waits a minute in all. */
const TIMEOUT_MS = 10_000;

/** Safari 14 wakes its IndexedDB process for `databases()` but may not for `open()`. Listing names takes no other browser this long. */
const WAKE_MS = 500;

/** How work ends when its connection is gone. With any other error it would fail on a new one too. */
const DEAD: readonly unknown[] = ['AbortError', 'InvalidStateError', 'UnknownError'];

const ignore = (): void => {};

const nameOf = (error: unknown): unknown => (error as Error | null)?.name;

/** For what fails only because it is over already. */
const quietly = (act: () => void): void => {
  try {
    act();
  } catch {
    // It ended by itself.
  }
};

/** Makes work settle as it does, or after `ms` with an error of the given name. */
const limiter =
  (clock: Clock, ms: number): Limit =>
  (name, work) =>
    within({ clock, ms, expired: () => new DOMException(`nothing heard for ${ms} ms`, name) }, work);

const transact = async <T>(transaction: IDBTransaction, work: Work<T>, retried: boolean, limit: Limit): Promise<T> => {
  let reason: DOMException | null = null;
  // Listeners, because idb-keyval's functions set `oncomplete` and its like themselves.
  const complete = new Promise<void>((resolve, reject) => {
    transaction.addEventListener('complete', () => resolve());
    transaction.addEventListener('error', event => (reason ??= (event.target as IDBRequest).error));
    transaction.addEventListener('abort', () => reject(new DOMException('connection lost', 'AbortError')));
  });
  complete.catch(ignore);
  const run = async (): Promise<T> => {
    const result = await work(transaction.objectStore(STORE), retried);
    // Without it the browser first waits whether more requests come.
    quietly(() => transaction.commit());
    // What was read is true however the reading ends; Chromium aborts it when one of many values is lost.
    if (transaction.mode !== 'readonly') await complete;
    return result;
  };
  try {
    return await limit('AbortError', run());
  } catch (error) {
    // The transaction knows of a quota; its requests only that they were aborted.
    const cause = transaction.error ?? reason ?? error;
    quietly(() => transaction.abort());
    throw cause;
  }
};

/** Dead or full, every failure tells what came and what can be done. */
const storeError = (name: string, cause: unknown): SamekeyError => {
  if (cause instanceof SamekeyError) return cause;
  if (nameOf(cause) === 'QuotaExceededError') {
    return new StoreFullError(`This site's quota is used up, so "${name}" took nothing. Free storage of the origin or keep answers for less long, then call again.`, { cause });
  }
  return new StoreUnavailableError(
    `IndexedDB "${name}" cannot be used (${String(cause)}). Allow site data for this page, close its other tabs or reload it, then call again; a memory store would work, but forgets with the page.`,
    { cause },
  );
};

/** One object store in one database, over a connection that is opened at the first use and again whenever it was lost. */
export const openDatabase = (options: DatabaseOptions): Database => {
  const { name, indexes = {}, timeout = TIMEOUT_MS, clock = systemClock, factory = () => globalThis.indexedDB } = options;
  const limit = limiter(clock, timeout);
  let current: Promise<IDBDatabase> | undefined;
  let frame: HTMLIFrameElement | undefined;

  /** WebKit that lost its database process refuses this page for ever; a new frame of the same origin gets a new connection. */
  const framed = (): IDBFactory | undefined => {
    frame = document.createElement('iframe');
    frame.hidden = true;
    document.documentElement.append(frame);
    return frame.contentWindow?.indexedDB;
  };
  const doors = globalThis.document ? [factory, factory, framed] : [factory, factory];

  const open = async (door: () => IDBFactory | undefined): Promise<IDBDatabase> => {
    const idb = door();
    if (!idb) throw new DOMException('there is no indexedDB here', 'NotSupportedError');
    await limiter(clock, WAKE_MS)('TimeoutError', idb.databases()).catch(ignore);
    // Without a version, so that it neither waits for other tabs nor fails beside a newer one.
    const request = idb.open(name);
    request.onupgradeneeded = () => {
      const store = request.result.createObjectStore(STORE);
      for (const [index, keyPath] of Object.entries(indexes)) store.createIndex(index, keyPath);
    };
    return promisifyRequest(request);
  };

  const drop = (connection: Promise<IDBDatabase>): void => {
    if (current !== connection) return;
    current = undefined;
    connection.then(db => db.close(), ignore);
    frame?.remove();
    frame = undefined;
  };

  const connect = (door: () => IDBFactory | undefined): Promise<IDBDatabase> => {
    if (current) return current;
    const opening = open(door);
    const connection = limit('TimeoutError', opening);
    current = connection;
    connection.catch(() => drop(connection));
    opening.then(db => {
      const leave = (): void => {
        db.close();
        drop(connection);
      };
      // It came when nobody waited any more.
      if (current !== connection) return leave();
      // A tab that keeps its connection would block the deletion or upgrade that another one asked for.
      db.onversionchange = db.onclose = leave;
    }, ignore);
    return connection;
  };

  return {
    async use(mode, work, durability = 'relaxed') {
      let failure: unknown;
      for (const [attempt, door] of doors.entries()) {
        const connection = connect(door);
        try {
          const db = await connection;
          return await transact(db.transaction(STORE, mode, { durability }), work, attempt > 0, limit);
        } catch (error) {
          failure = error;
          if (!DEAD.includes(nameOf(error))) break;
          drop(connection);
        }
      }
      throw storeError(name, failure);
    },
    async close() {
      const connection = current;
      if (!connection) return;
      drop(connection);
      await connection.catch(ignore);
    },
  };
};
