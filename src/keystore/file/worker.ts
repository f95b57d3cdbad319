import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Durability } from '../keystore.js';
import { openDatabase } from './database.js';
import { openEngine } from './engine.js';
import type { Engine } from './engine.js';
import { isBusy, toFailure } from './failure.js';
import type { Failure } from './failure.js';
import { thisMachine } from './machine.js';
import { BUSY_LIMIT_MS, lockedOut } from './patience.js';
import type { RowResult, RowWrite } from './rows.js';
import type { Tuning } from './schema.js';

/** What the thread is started with. */
export interface WorkerTask {
  readonly path: string;
  readonly tuning: Tuning;
}

export type WorkerRequest = { readonly writes: readonly RowWrite[]; readonly durability: Durability } | 'close';
export type WorkerReply = { readonly results: RowResult[] } | { readonly failure: Failure } | 'closed';

const { clock } = thisMachine;
const { path, tuning } = workerData as WorkerTask;
const port = parentPort as MessagePort;
const time = (): number => clock.monotonic?.() ?? clock.now();
const cell = new Int32Array(new SharedArrayBuffer(4));

/** A commit takes about this long, so whoever waits for one looks again soon after it can be over. */
const PAUSE_MS = 0.5;

/** Here a lock may be waited for: the thread has nothing else to do. Short, jittered waits, because SQLite's own grow until the waiting process starves. */
const patiently = <T>(work: () => T): T => {
  const since = time();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (time() - since > BUSY_LIMIT_MS) throw lockedOut(path, thisMachine, error);
      Atomics.wait(cell, 0, 0, PAUSE_MS * (0.5 + thisMachine.random()));
    }
  }
};

let engine: Engine | undefined;

const reply = (request: WorkerRequest): WorkerReply => {
  if (request === 'close') {
    engine?.close();
    port.close();
    return 'closed';
  }
  try {
    const ready = (engine ??= patiently(() => openEngine(openDatabase(path, tuning), path, clock)));
    return { results: patiently(() => ready.commit(request.writes, request.durability)) };
  } catch (error) {
    return { failure: toFailure(error) };
  }
};

port.on('message', (request: WorkerRequest) => {
  port.postMessage(reply(request));
});
