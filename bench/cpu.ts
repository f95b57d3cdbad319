import { fork } from 'node:child_process';
import { once } from 'node:events';
import ky from 'ky';
import { createClient } from '../src/index.js';
import { memoryKeyStore } from '../src/keystore/memory.js';

/**
 * CPU time per operation with the memory store over the same call of bare ky, which clones and may resend too. On a
 * function that answers at once what is left is what the libraries themselves cost; on a loopback server it is what a
 * caller notices.
 */
const GOAL = 1.5;
const ROUNDS = 11;

/** Few enough that a round is over before the machine's mood changes, enough that garbage collection meets every kind. */
const OPERATIONS = 400;

/** Before anything is measured: so long does it take until the compiler has seen and optimised the paths of all subjects. */
const WARM_UP = 3_000;

const ANSWER = JSON.stringify({ id: 'ch_1', amount: 4200 });
const HEADERS = { 'content-type': 'application/json' };

type Send = (request: Request) => Promise<Response>;
type Call = (index: number) => Promise<unknown>;

/** Where requests go. */
interface Network {
  readonly name: string;
  readonly origin: string;
  readonly send: Send;
  close(): void;
}

const functionNetwork = (): Network => ({
  name: 'a function as fetch',
  origin: 'https://api.test',
  send: async request => {
    // A real network reads the body; not to do so would flatter whoever leaves it as a stream.
    await request.arrayBuffer();
    return new Response(ANSWER, { status: 201, headers: HEADERS });
  },
  close: () => {},
});

const loopbackNetwork = async (): Promise<Network> => {
  const server = fork(new URL('./support/charge-server.ts', import.meta.url));
  const [port] = (await once(server, 'message')) as [number];
  return { name: 'a server on loopback', origin: `http://127.0.0.1:${port}`, send: fetch, close: () => server.disconnect() };
};

const bare = ({ origin, send }: Network): Call => {
  const http = ky.create({ prefix: origin, fetch: send as typeof fetch, retry: { limit: 7, methods: ['post'] } });
  return index => http.post('charges', { json: { order: index, amount: 4200 } }).json();
};

const withSamekey = ({ origin, send }: Network, named: boolean): Call => {
  const api = createClient({ prefix: origin, fetch: send, keystore: memoryKeyStore(), scope: 'bench', maxUnsettled: Number.MAX_SAFE_INTEGER });
  return index => api.post('charges', { ...(named && { operation: `order:${index}` }), json: { order: index, amount: 4200 } }).json();
};

const SUBJECTS: Readonly<Record<string, (network: Network) => Call>> = {
  'bare ky': bare,
  'samekey, anonymous': network => withSamekey(network, false),
  'samekey, named': network => withSamekey(network, true),
};

/** µs of CPU per operation, user and system, of all threads. */
const measure = async (call: Call, operations: number): Promise<number> => {
  const before = process.cpuUsage();
  for (let index = 0; index < operations; index += 1) await call(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / operations;
};

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Figures per subject, in the order of SUBJECTS: fresh clients and stores per round, interleaved, so that drift of the machine meets all alike. */
const round = async (network: Network, operations: number): Promise<number[]> => {
  const figures: number[] = [];
  for (const subject of Object.values(SUBJECTS)) figures.push(await measure(subject(network), operations));
  return figures;
};

const report = async (network: Network): Promise<void> => {
  await round(network, WARM_UP);
  const rounds: number[][] = [];
  for (let count = 0; count < ROUNDS; count += 1) rounds.push(await round(network, OPERATIONS));
  network.close();
  console.log(`CPU per operation on ${network.name}, µs; medians of ${ROUNDS} interleaved rounds of ${OPERATIONS} operations`);
  Object.keys(SUBJECTS).forEach((name, at) => {
    const cost = median(rounds.map(figures => figures[at] ?? Number.NaN)).toFixed(0);
    const ratio = median(rounds.map(figures => (figures[at] ?? Number.NaN) / (figures[0] ?? Number.NaN)));
    console.log(`${name.padEnd(20)} ${cost.padStart(6)}${at === 0 ? '' : `   ${ratio.toFixed(2)}x   goal ${GOAL}x ${ratio <= GOAL ? 'met' : 'MISSED'}`}`);
  });
};

await report(functionNetwork());
await report(await loopbackNetwork());
