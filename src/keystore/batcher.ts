import { isSamekeyError } from '../errors.js';
import type { Durability, KeyStore, StoredHead, Write, WriteResult } from './keystore.js';
import { assertStorable } from './storable.js';

/** What a store must supply; {@link batched} makes a {@link KeyStore} of it. */
export interface KeyStoreDriver<H extends StoredHead = StoredHead> extends Omit<KeyStore<H>, 'commit'> {
  /**
   * Does all the writes in ONE transaction, in their order; each sees what those before it did. A conflict is an answer
   * and leaves its neighbours alone. Anything thrown means that nothing of the batch is there: `StoreUnavailableError`
   * and `StoreCorruptError` speak for the whole store, every other error for some write of the batch. Never called twice
   * at a time.
   */
  commit(writes: readonly Write<H>[], durability: Durability): WriteResult<H>[] | Promise<WriteResult<H>[]>;
}

export interface BatchLimits {
  /** Most writes in one transaction. @default 256 */
  readonly maxWrites?: number;
  /** Most bytes of bodies in one transaction, unless a single write has more. @default 1_048_576 */
  readonly maxBytes?: number;
}

/** One call of `commit`, until each of its writes has an answer. */
interface Call<H extends StoredHead> {
  readonly durability: Durability;
  readonly results: WriteResult<H>[];
  open: number;
  resolve(results: WriteResult<H>[]): void;
  reject(error: unknown): void;
}

interface Entry<H extends StoredHead> {
  readonly call: Call<H>;
  readonly index: number;
  readonly write: Write<H>;
}

/** One channel for all, because making one costs as much as a small commit. */
const turnsOf = ({ port1, port2 }: MessageChannel): ((run: () => void) => void) => {
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return run => {
    waiting.push(run);
    port2.postMessage(0);
  };
};

/**
 * Runs once this turn of the event loop is over, so that everything which starts in one turn shares a transaction. A
 * microtask would be too early: callers woken by one commit have promise chains of different lengths. Bound when the
 * module loads, so that a test's fake timers never stop a store.
 */
const afterTurn: (run: () => void) => void =
  typeof globalThis.setImmediate === 'function'
    ? globalThis.setImmediate
    : turnsOf(new MessageChannel());

const bytesOf = ({ next }: Write): number => (next?.request?.byteLength ?? 0) + (next?.response?.byteLength ?? 0);

/** Such an error says nothing about a single write: trying them one by one would only meet it again. */
const concernsAll = (error: unknown): boolean => isSamekeyError(error, 'STORE_UNAVAILABLE') || isSamekeyError(error, 'STORE_CORRUPT');

const answer = <H extends StoredHead>({ call, index }: Entry<H>, result: WriteResult<H>): void => {
  call.results[index] = result;
  if (--call.open === 0) call.resolve(call.results);
};

/**
 * Makes a store of a driver: writes of one turn of the event loop share a transaction, at most one transaction is under
 * way, and a batch is strict when one of its calls is. A write that cannot be stored is `failed` and never costs its
 * neighbours: what the driver refuses as a whole is halved until the bad write stands alone.
 */
export const batched = <H extends StoredHead>(driver: KeyStoreDriver<H>, limits: BatchLimits = {}): KeyStore<H> => {
  const { maxWrites = 256, maxBytes = 1_048_576 } = limits;
  let queue: Entry<H>[] = [];
  let pumping: Promise<void> | undefined;
  let closing: Promise<void> | undefined;

  const take = (): Entry<H>[] => {
    let bytes = 0;
    const end = queue.findIndex(({ write }, at) => (bytes += bytesOf(write)) > maxBytes && at > 0);
    const count = Math.min(end === -1 ? queue.length : end, maxWrites);
    const batch = queue;
    queue = batch.splice(count);
    return batch;
  };

  const run = async (batch: readonly Entry<H>[]): Promise<void> => {
    const durability = batch.some(({ call }) => call.durability === 'strict') ? 'strict' : 'relaxed';
    try {
      const results = await driver.commit(batch.map(({ write }) => write), durability);
      batch.forEach((entry, at) => answer(entry, results[at] as WriteResult<H>));
    } catch (error) {
      if (concernsAll(error)) return batch.forEach(({ call }) => call.reject(error));
      if (batch.length === 1) return answer(batch[0] as Entry<H>, { kind: 'failed', error });
      const half = batch.length >> 1;
      await run(batch.slice(0, half));
      await run(batch.slice(half));
    }
  };

  const pump = async (): Promise<void> => {
    while (queue.length > 0) {
      await new Promise<void>(resolve => afterTurn(resolve));
      await closing?.catch(() => undefined); // whoever closed hears of it; here only the order matters
      await run(take());
    }
    pumping = undefined;
  };

  const enqueue = (write: Write<H>, call: Call<H>, index: number): void => {
    try {
      if (write.next !== undefined) assertStorable(write.next);
      queue.push({ call, index, write });
    } catch (error) {
      answer({ call, index, write }, { kind: 'failed', error });
    }
  };

  return {
    get info() {
      return driver.info;
    },
    get: ref => driver.get(ref),
    scan: query => driver.scan(query),
    countOpen: client => driver.countOpen(client),
    owner: () => driver.owner(),
    liveness: owner => driver.liveness(owner),
    latest: () => driver.latest(),
    commit: (writes, durability = 'strict') =>
      writes.length === 0
        ? Promise.resolve([])
        : new Promise((resolve, reject) => {
            const call: Call<H> = { durability, results: [], open: writes.length, resolve, reject };
            writes.forEach((write, index) => enqueue(write, call, index));
            if (queue.length > 0) pumping ??= pump();
          }),
    async close() {
      while (pumping !== undefined) await pumping;
      closing ??= driver.close().finally(() => (closing = undefined));
      await closing;
    },
  };
};
