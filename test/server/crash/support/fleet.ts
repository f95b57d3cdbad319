import type { AtEnd } from '../../../keystore/support/processes.js';
import { startWorker, type WorkerProcess } from './scene.js';
import type { Job } from './job.js';

/** Workers that die, one after the other, and are replaced. */
export interface Fleet {
  /** One of those that take requests. */
  pick(at: number): WorkerProcess;
  /** How often handlers have begun with a key. */
  entries(key: string): number;
  /** Kills the next one, whatever it is about, where all are there. Resolves when its successor takes requests. */
  kill(): Promise<void>;
  /** Kills all. */
  close(): Promise<void>;
}

/** Of each worker: fewer than requests, so that these wait for each other. */
const CONNECTIONS = 6;

export const startFleet = async ({ atEnd, ...rest }: Omit<Job, 'connections'> & { readonly atEnd?: AtEnd }, size: number): Promise<Fleet> => {
  const job = { ...rest, connections: CONNECTIONS };
  const workers = Array.from({ length: size }, () => startWorker(job, atEnd));
  await Promise.all(workers.map(({ ready }) => ready));
  return {
    pick: at => workers[at % workers.length] as WorkerProcess,
    entries: key => workers.reduce((sum, worker) => sum + worker.entries(key), 0),
    async kill() {
      const victim = workers.shift();
      const heir = startWorker(job, atEnd);
      await Promise.all([victim?.kill(), heir.ready]);
      workers.push(heir);
    },
    close: async () => void (await Promise.all(workers.map(worker => worker.kill()))),
  };
};
