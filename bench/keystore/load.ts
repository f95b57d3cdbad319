import type { StoredHead } from '../../src/keystore/keystore.js';

/** One way to keep operations. Both steps resolve when they are as durable as the subject makes them. */
export interface Subject {
  begin(operation: Operation): Promise<unknown>;
  settle(operation: Operation): Promise<unknown>;
  close(): Promise<void>;
}

/** An operation as it is begun and as it is settled, both made beforehand, so that making them is not measured. */
export interface Operation {
  readonly begun: StoredHead;
  readonly settled: StoredHead;
}

export interface Measure {
  /** begin + settle pairs per second. */
  readonly rate: number;
  /** ms of one begin. */
  readonly p50: number;
  readonly p99: number;
  /** µs of processor time per operation, of the whole process. */
  readonly cpu: number;
}

/** Bodies between these sizes, log-uniform: small JSON is usual, a few kilobytes happen. */
const MIN_BODY = 100;
const MAX_BODY = 3000;

/** Deterministic, so that every subject and every round stores the same sizes. */
const sequence = (seed: number): (() => number) => {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) >>> 0) / 2 ** 32;
};

const uuidLike = (next: () => number, at: number): string =>
  `0199${at.toString(16).padStart(8, '0')}-7${Math.floor(next() * 0xfff).toString(16).padStart(3, '0')}-8${Math.floor(next() * 2 ** 48).toString(16).padStart(15, '0')}`;

/** Heads like those of a client that posts JSON to a payment API. */
export const operations = (count: number, seed = 1): Operation[] => {
  const next = sequence(seed);
  const body = (): ArrayBuffer => new Uint8Array(Math.floor(MIN_BODY * (MAX_BODY / MIN_BODY) ** next())).fill(65).buffer;
  return Array.from({ length: count }, (_, at) => operationOf(uuidLike(next, seed * 10_000_000 + at), at, body(), body().slice(0, 400)));
};

const operationOf = (key: string, at: number, request: ArrayBuffer, response: ArrayBuffer): Operation => {
  const time = 1_790_000_000_000 + at;
  const url = 'https://api.shop.example/v1/charges';
  const headers = [['accept', 'application/json'], ['x-request-id', key]];
  const kept = {
    client: 'default',
    scope: 'acct_1NwLkz2eZvKYlo2C',
    id: `name:order:${key}:charge`,
    writtenAt: time,
    format: 1,
    name: `order:${key}:charge`,
    generation: 1,
    revision: 1,
    key,
    keySource: 'derived',
    elsewhere: true,
    snapshot: { method: 'POST', url, headers, contentType: 'application/json' },
    fingerprint: `v1:sha256:${key.replaceAll('-', '').repeat(2)}`,
    createdAt: time,
    firstSentAt: time,
    lastSentAt: time,
    keyWindow: 86_400_000,
    attempts: 1,
    ambiguous: true,
    sawSuccess: false,
    fence: 1,
    past: [],
  };
  const lease = { owner: `file:${key}`, until: time + 15_000 };
  const answer = { status: 201, statusText: 'Created', url, headers: [['content-type', 'application/json'], ...headers] };
  const begun = { ...kept, version: time, shelf: 'open' as const, due: time + 15_000, state: 'pending', lease, request, response: null };
  // A settled head keeps its answer, and nothing of what was sent.
  const settled = { ...kept, snapshot: undefined, version: time + 1, shelf: 'settled' as const, due: time + 86_400_000, state: 'succeeded', settledAt: time + 300, answer, request: null, response };
  return { begun, settled };
};

const percentile = (sorted: readonly number[], part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Runs operations for about `ms`, `concurrency` at a time, with one turn of the event loop (the send) between begin and settle. */
export const measure = async (subject: Subject, supply: readonly Operation[], concurrency: number, ms: number): Promise<Measure> => {
  const waits: number[] = [];
  let used = 0;
  const started = performance.now();
  const cpu = process.cpuUsage();
  const driver = async (): Promise<void> => {
    while (performance.now() - started < ms && used < supply.length) {
      const operation = supply[used++] as Operation;
      const before = performance.now();
      await subject.begin(operation);
      waits.push(performance.now() - before);
      await turn();
      await subject.settle(operation);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, driver));
  const took = performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  const sorted = waits.sort((a, b) => a - b);
  return { rate: (waits.length / took) * 1000, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), cpu: (user + system) / waits.length };
};

export const median = (values: readonly number[]): number => percentile([...values].sort((a, b) => a - b), 0.5);
