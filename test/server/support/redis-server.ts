import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNodeRedis } from './redis.js';

/** A Redis of the test's own: to be misconfigured, stopped and killed. */
export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** It accepts bytes, and answers nothing until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** As the kernel does when memory runs out. */
  kill(): Promise<void>;
  dispose(): Promise<void>;
}

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
};

/** The client keeps trying to connect until the server is there. */
const untilItAnswers = async (url: string): Promise<void> => {
  const client = await connectNodeRedis(url);
  await client.close();
};

/** Starts a server without persistence on a free port, or on that of one that was killed. */
export const startRedis = async (flags: readonly string[] = [], port?: number): Promise<TestServer> => {
  const listening = port ?? (await freePort());
  const url = `redis://127.0.0.1:${listening}`;
  const folder = mkdtempSync(join(tmpdir(), 'samekey-redis-'));
  const common = ['--port', String(listening), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder, '--repl-diskless-sync-delay', '0'];
  const server: ChildProcess = spawn('redis-server', [...common, ...flags], { stdio: 'ignore' });
  const gone = once(server, 'exit');
  const kill = async (): Promise<void> => {
    server.kill('SIGKILL');
    await gone;
  };
  await untilItAnswers(url);
  return {
    url,
    port: listening,
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    kill,
    async dispose() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
