import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ApiEvent } from './events.js';

const start = (file: string, env: Readonly<Record<string, string>>): ChildProcess =>
  fork(fileURLToPath(new URL(file, import.meta.url)), { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });

export interface PaymentApi {
  readonly origin: string;
  /** Rejects when it ends without being asked to. */
  readonly died: Promise<never>;
  /** Ends the process. Everything it had to tell was told when this resolves. */
  stop(): Promise<void>;
}

export const startPaymentApi = async (env: Readonly<Record<string, string>>, tell: (event: ApiEvent) => void): Promise<PaymentApi> => {
  const child = start('payment-api.ts', env);
  const [{ port }] = await once(child, 'message') as [{ port: number }];
  child.on('message', event => tell(event as ApiEvent));
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`The payment API ended by itself with ${String(code)}. What it said stands above.`);
  });
  died.catch(() => {}); // heard by whoever waits for it
  return {
    origin: `http://127.0.0.1:${port}`,
    died,
    async stop() {
      if (!child.connected) return;
      const told = once(child, 'disconnect');
      child.send('stop');
      await told;
    },
  };
};

export interface Shop {
  /** SIGKILL: no handler runs, nothing is flushed. */
  kill(): void;
  /** True when it went through all its orders, false when it was killed. Rejects when it failed by itself. */
  readonly finished: Promise<boolean>;
  /** What it has printed: order to charge. */
  readonly receipts: ReadonlyMap<string, string>;
}

export const startShop = (file: string, env: Readonly<Record<string, string>>, signal: AbortSignal): Shop => {
  const child = start(file, env);
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  const receipts = new Map<string, string>();
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', line => {
      const [order = '', charge = ''] = line.split(' ');
      receipts.set(order, charge);
    });
  }
  const end = async (): Promise<boolean> => {
    // 'close' comes after the last line was read, unlike 'exit'.
    const [code, endedBy] = await once(child, 'close') as [number | null, string | null];
    signal.removeEventListener('abort', kill);
    if (code !== 0 && endedBy !== 'SIGKILL') throw new Error(`${file} ended by itself with ${code ?? endedBy}. What it said stands above.`);
    return code === 0;
  };
  return { kill, finished: end(), receipts };
};
