import { startWorker, type WorkerProcess } from './scene.js';
import type { Job } from './job.js';

/** Workers that die, one after the other, and are replaced. */
export interface Fleet {
  /** One of those that take requests. */
  pick(at: number): WorkerProcess;
  /** Kills the next one, whatever it is about, where all are there. Resolves when its successor takes requests. */
  kill(): Promise<void>;
  /** Kills all. */
  close(): Promise<void>;
}

export const startFleet = async (job: Job, size: number): Promise<Fleet> => {
  const workers = Array.from({ length: size }, () => startWorker(job));
  await Promise.all(workers.map(({ ready }) => ready));
  return {
    pick: at => workers[at % workers.length] as WorkerProcess,
    async kill() {
      const victim = workers.shift();
      const heir = startWorker(job);
      await Promise.all([victim?.kill(), heir.ready]);
      workers.push(heir);
    },
    close: async () => void (await Promise.all(workers.map(worker => worker.kill()))),
  };
};
