import ky from 'ky';
import { createClient } from '../src/index.js';
import { memoryKeyStore } from '../src/keystore/memory.js';

/**
 * CPU time per operation with the memory store over the same call of bare ky. The network is a function that answers at
 * once, so what is left is what the libraries themselves cost.
 */
const GOAL = 1.5;
const OPERATIONS = 2_000;
const ROUNDS = 9;

const ORIGIN = 'https://api.test';
const ANSWER = JSON.stringify({ id: 'ch_1', amount: 4200 });

const network = async (request: RequestInfo | URL): Promise<Response> => {
  // A real network reads the body; not to do so would flatter whoever leaves it as a stream.
  await (request as Request).arrayBuffer();
  return new Response(ANSWER, { status: 201, headers: { 'content-type': 'application/json' } });
};

type Call = (index: number) => Promise<unknown>;

const bare = (): Call => {
  const http = ky.create({ prefix: ORIGIN, fetch: network, retry: { limit: 7, methods: ['post'] } });
  return index => http.post('charges', { json: { order: index, amount: 4200 } }).json();
};

const withSamekey = (named: boolean): Call => {
  const api = createClient({ prefix: ORIGIN, fetch: network, keystore: memoryKeyStore(), scope: 'bench', maxUnsettled: Number.MAX_SAFE_INTEGER });
  return index => api.post('charges', { ...(named ? { operation: `order:${index}` } : {}), json: { order: index, amount: 4200 } }).json();
};

/** µs of CPU per operation, user and system. */
const measure = async (call: Call): Promise<number> => {
  const before = process.cpuUsage();
  for (let index = 0; index < OPERATIONS; index += 1) await call(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / OPERATIONS;
};

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const rounds: { readonly ky: number; readonly anonymous: number; readonly named: number }[] = [];
for (let round = 0; round <= ROUNDS; round += 1) {
  // Fresh clients and stores per round, interleaved, so that drift of the machine meets all three alike.
  const figures = { ky: await measure(bare()), anonymous: await measure(withSamekey(false)), named: await measure(withSamekey(true)) };
  // The first round pays for compilation.
  if (round > 0) rounds.push(figures);
}

console.log(`CPU per operation, µs; medians of ${ROUNDS} interleaved rounds of ${OPERATIONS} operations`);
console.log(`bare ky             ${median(rounds.map(round => round.ky)).toFixed(0).padStart(6)}`);
for (const kind of ['anonymous', 'named'] as const) {
  const ratio = median(rounds.map(round => round[kind] / round.ky));
  const cost = median(rounds.map(round => round[kind])).toFixed(0).padStart(6);
  console.log(`samekey, ${kind.padEnd(10)} ${cost}   ${ratio.toFixed(2)}x   goal ${GOAL}x ${ratio <= GOAL ? 'met' : 'MISSED'}`);
}
