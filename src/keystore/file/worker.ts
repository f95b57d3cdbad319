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
/** `ready` comes by itself, once; all others answer a request. */
export type WorkerReply = 'ready' | { readonly results: RowResult[] } | { readonly failure: Failure } | 'closed';

const { clock } = thisMachine;
const { path, tuning } = workerData as WorkerTask;
const port = parentPort as MessagePort;
const time = (): number => clock.monotonic?.() ?? clock.now();
const cell = new Int32Array(new SharedArrayBuffer(4));

/** A commit takes about this long, so whoever waits for one looks again soon after it can be over. */
const PAUSE_MS = 0.5;

/** Longer than the longest pause of a waiting process, so that it is sure to find the lock free once. */
const COURTESY_MS = 1;

/** So many commits after the last sign of other writers this thread still lets them go first. */
const COURTESIES = 32;

const pause = (ms: number): void => void Atomics.wait(cell, 0, 0, ms * (0.5 + thisMachine.random()));

/** Here a lock may be waited for: the thread has nothing else to do. Short, jittered waits, because SQLite's own grow until the waiting process starves. */
const patiently = <T>(work: () => T): T => {
  const since = time();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (time() - since > BUSY_LIMIT_MS) throw lockedOut(path, thisMachine, error);
      courtesies = COURTESIES;
      pause(PAUSE_MS);
    }
  }
};

let engine: Engine | undefined;
let courtesies = 0;

/**
 * A process that commits again at once would find the lock free each time, and those that wait would starve. So whoever
 * shares the database leaves a gap before each commit, and only then.
 */
const commit = (open: Engine, { writes, durability }: Exclude<WorkerRequest, 'close'>): RowResult[] => {
  if (courtesies > 0) pause(COURTESY_MS);
  const results = patiently(() => open.commit(writes, durability));
  courtesies = open.othersWrote() ? COURTESIES : Math.max(0, courtesies - 1);
  return results;
};

const ready = (): Engine => (engine ??= patiently(() => openEngine(openDatabase(path, tuning), path, clock)));

const reply = (request: WorkerRequest): WorkerReply => {
  if (request === 'close') {
    engine?.close();
    return 'closed';
  }
  try {
    return { results: commit(ready(), request) };
  } catch (error) {
    return { failure: toFailure(error) };
  }
};

port.on('message', (request: WorkerRequest) => {
  port.postMessage(reply(request));
  if (request === 'close') port.close();
});

try {
  ready();
  port.postMessage('ready' satisfies WorkerReply);
} catch {
  // The first request meets the same error, and has somebody to tell.
}
