import { expect } from 'vitest';
import { startScript, type AtEnd, type Spoken } from '../../../keystore/support/processes.js';
import { STOP_HEADER, type Endpoint, type Job, type Step } from './job.js';

/** A server process that can be killed. */
export interface WorkerProcess {
  /** Resolves when it takes requests. */
  readonly ready: Promise<unknown>;
  /** The answer of an endpoint; rejects when the process dies before it has given one. */
  send(endpoint: Endpoint, key: string): Promise<Response>;
  /** Sends a request that stands still at a step. Resolves when it does. */
  park(endpoint: Endpoint, key: string, step: Step): Promise<void>;
  /** How often the handler has begun with a key. */
  entries(key: string): number;
  /** Ends it as the kernel does when memory is out: it learns nothing of it. */
  kill(): Promise<void>;
}

const script = new URL('./worker.ts', import.meta.url).pathname;

const post = async (process: Spoken, path: string, headers: Record<string, string>): Promise<Response> => {
  const port = (await process.line('listening ')).split(' ')[1];
  return fetch(`http://127.0.0.1:${port}/${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{"amount":4200}' });
};

export const startWorker = (job: Job, atEnd?: AtEnd): WorkerProcess => {
  const process = startScript(script, [JSON.stringify(job)], atEnd && { atEnd });
  return {
    ready: process.line('listening '),
    send: (endpoint, key) => post(process, endpoint, { 'idempotency-key': key }),
    async park(endpoint, key, step) {
      const parked = process.line(`at ${step} /${endpoint} ${key}`);
      const passed = async (response: Response): Promise<never> => {
        throw new Error(`A request to ${endpoint} was to stand still at ${step}, and was answered: ${response.status} ${await response.text()} ${process.lines.filter(line => line.startsWith('failed')).join(' ')}`);
      };
      // A process that was killed while it stood still answers nothing.
      const answer = post(process, endpoint, { 'idempotency-key': key, [STOP_HEADER]: step }).then(passed, () => parked);
      await Promise.race([parked, answer]);
    },
    entries: key => process.lines.filter(line => line === `entered ${key}`).length,
    async kill() {
      process.child.kill('SIGKILL');
      await process.ended;
    },
  };
};

export const isReplay = (response: Response): boolean => response.headers.get('idempotent-replayed') === 'true';

/** What a problem answer says. */
export const codeOf = async (response: Response): Promise<string> => ((await response.json()) as { code: string }).code;

/** A first answer, and not a repeat of one. */
export const expectExecuted = async (response: Response): Promise<unknown> => {
  expect([response.status, isReplay(response)]).toEqual([201, false]);
  return response.json();
};

export const expectReplay = async (response: Response): Promise<unknown> => {
  expect([response.status, isReplay(response)]).toEqual([201, true]);
  return response.json();
};
