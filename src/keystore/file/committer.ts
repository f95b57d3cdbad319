import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { StoreUnavailableError } from '../../errors.js';
import type { Durability } from '../keystore.js';
import type { Engine } from './engine.js';
import { fromFailure } from './failure.js';
import type { Patiently } from './patience.js';
import type { RowResult, RowWrite } from './rows.js';
import type { WorkerReply, WorkerRequest, WorkerTask } from './worker.js';

/** Does commits, one at a time. */
export interface Committer {
  commit(writes: readonly RowWrite[], durability: Durability): Promise<RowResult[]>;
  close(): Promise<void>;
}

/** A sync that takes this long, over and over, is better waited for on another thread: the event loop would stand still meanwhile. */
const SLOW_SYNC_MS = 1.5;

/** So many slow syncs more than quick ones make a slow disk; a busy moment does not. */
const SLOW_SYNCS = 8;

/** A larger batch has much to write; the time of its commit says little about the disk. */
const SMALL_BATCH = 16;

/**
 * On the thread of the caller: the shortest way while the disk is fast and nobody else writes.
 *
 * @param onHindrance - told when either is not so
 */
export const mainCommitter = (engine: Engine, patiently: Patiently, onHindrance: () => void = () => {}): Committer => {
  let slowSyncs = 0;
  return {
    async commit(writes, durability) {
      const results = await patiently(() => engine.commit(writes, durability), onHindrance);
      if (durability === 'strict' && writes.length <= SMALL_BATCH) slowSyncs = Math.max(0, slowSyncs + (engine.syncTook > SLOW_SYNC_MS ? 1 : -1));
      if (slowSyncs === SLOW_SYNCS || engine.othersWrote()) onHindrance();
      return results;
    },
    close: async () => {}, // The connection serves the readers too; who opened it closes it.
  };
};

/** It lies beside this file, built or as source. */
const workerUrl = new URL(`./worker${extname(import.meta.url)}`, import.meta.url);

/** On a thread of its own, where waiting for the disk or for other processes holds up nobody. It never keeps a process alive by itself. */
export const workerCommitter = (task: WorkerTask, onReady: () => void = () => {}): Committer => {
  const worker = new Worker(workerUrl, { workerData: task });
  let ended: StoreUnavailableError | undefined;
  let pending: { readonly resolve: (reply: WorkerReply) => void; readonly reject: (error: unknown) => void } | undefined;

  const settle = (act: (waiting: NonNullable<typeof pending>) => void): void => {
    const waiting = pending;
    pending = undefined;
    worker.unref();
    if (waiting) act(waiting);
  };

  const fail = (cause: unknown): void => {
    ended ??= new StoreUnavailableError(`The thread that writes the key store has ended (${String(cause)}). The next call starts another one.`, { cause });
    settle(({ reject }) => reject(ended));
  };

  worker.on('message', (reply: WorkerReply) => (reply === 'ready' ? onReady() : settle(({ resolve }) => resolve(reply))));
  worker.on('error', fail);
  worker.on('exit', code => fail(`exit code ${code}`));
  worker.unref();

  const ask = (request: WorkerRequest): Promise<WorkerReply> =>
    new Promise((resolve, reject) => {
      if (ended) return reject(ended);
      pending = { resolve, reject };
      worker.ref();
      worker.postMessage(request, []);
    });

  return {
    async commit(writes, durability) {
      const reply = await ask({ writes, durability });
      if (typeof reply === 'string') throw new StoreUnavailableError('The thread that writes the key store was closed.');
      if ('failure' in reply) throw fromFailure(reply.failure);
      return reply.results;
    },
    async close() {
      await ask('close');
      await worker.terminate();
    },
  };
};

/** On the thread of the caller until that is hindered; then on one of its own, from the moment that one is ready. */
export const adaptiveCommitter = (engine: Engine, patiently: Patiently, task: WorkerTask): Committer => {
  let worker: Committer | undefined;
  let current: Committer;
  const move = (): void => {
    worker ??= workerCommitter(task, () => (current = worker as Committer));
  };
  current = mainCommitter(engine, patiently, move);
  return {
    commit: (writes, durability) => current.commit(writes, durability),
    close: async () => worker?.close(),
  };
};
