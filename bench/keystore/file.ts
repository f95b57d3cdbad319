import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { Write } from '../../src/keystore/keystore.js';
import { measure, median, operations } from './load.js';
import type { Measure, Operation, Subject } from './load.js';
import { filePerOperation, floor, oneStatement, samekey, wholeJson } from './subjects.js';

/**
 * The file key store beside the disk itself and beside other ways to keep operations. All in one run, round by round, each
 * ratio inside its round: absolute figures depend on the disk and on what else the machine does.
 *
 * ROUNDS=7 MS=400 npm run bench:file
 */
const ROUNDS = Number(process.env['ROUNDS'] ?? 5);
const MS = Number(process.env['MS'] ?? 300);

type Make = (directory: string, supply: readonly Operation[]) => Subject;

const SUBJECTS: Readonly<Record<string, Make>> = {
  'floor: write + fdatasync': floor,
  // On a fixed thread: starting one half way would be measured too.
  'samekey, settle strict': directory => samekey(directory, 'strict', { thread: 'main' }),
  'samekey, settle relaxed': directory => samekey(directory, 'relaxed', { thread: 'main' }),
  'samekey on its own thread, settle strict': directory => samekey(directory, 'strict', { thread: 'worker' }),
  'SQLite, one statement per transaction': oneStatement,
  'one file per operation': filePerOperation,
  'one JSON file, 1,000 kept': wholeJson,
};

/** Goals as a part of the floor's rate. */
const GOALS: Readonly<Record<string, string>> = {
  'samekey, settle strict 1': '>= 0.95',
  'samekey, settle relaxed 1': '>= 1.7',
  'samekey, settle strict 16': '>= 0.75',
  'samekey, settle strict 256': '>= 0.30',
};

const inDirectory = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const row = (cells: readonly (string | number)[]): void =>
  console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(44) : String(typeof cell === 'number' ? Number(cell.toPrecision(3)) : cell).padStart(12))).join(''));

const once = (make: Make, supply: readonly Operation[], concurrency: number): Promise<Measure> =>
  inDirectory(async directory => {
    const subject = make(directory, supply);
    const warmUp = supply.slice(0, 4 * concurrency);
    await measure(subject, warmUp, concurrency, MS);
    const result = await measure(subject, supply.slice(warmUp.length), concurrency, MS);
    await subject.close();
    return result;
  });

const alone = async (concurrency: number): Promise<void> => {
  console.log(`\nbegin + settle, ${concurrency} at a time, ${ROUNDS} rounds of ${MS} ms, medians`);
  row(['', 'x floor', 'goal', 'pairs/s', 'begin p50', 'begin p99', 'µs CPU']);
  const results = new Map<string, Measure[]>(Object.keys(SUBJECTS).map(name => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    const supply = operations(concurrency * 400 + 4000, round + 1);
    for (const [name, make] of Object.entries(SUBJECTS)) results.get(name)?.push(await once(make, supply, concurrency));
  }
  const floors = [...results.values()][0] as Measure[];
  for (const [name, measures] of results) {
    const ratio = median(measures.map(({ rate }, round) => rate / (floors[round] as Measure).rate));
    const of = (pick: (measure: Measure) => number): number => median(measures.map(pick));
    row([name, ratio, GOALS[`${name} ${concurrency}`] ?? '', of(m => m.rate), of(m => m.p50), of(m => m.p99), of(m => m.cpu)]);
  }
};

/** Longer than alone: processes take turns. */
const TOGETHER_MS = 1500;
const PROCESSES = 4;

const worker = async (directory: string, seed: number): Promise<void> => {
  const supply = operations(40_000, seed);
  const subject = samekey(directory, 'strict');
  await measure(subject, supply.slice(0, 400), 16, TOGETHER_MS);
  console.log('ready');
  await new Promise(resolve => process.stdin.once('data', resolve));
  console.log(JSON.stringify(await measure(subject, supply.slice(400), 16, TOGETHER_MS)));
  await subject.close();
  process.stdin.destroy();
};

/** Names its owner and stays until it is killed. */
const owner = async (directory: string): Promise<void> => {
  console.log(await fileKeyStore(directory).owner());
  setInterval(() => {}, 60_000);
};

const startWorker = (directory: string, role: string, seed = 0): { child: ChildProcess; line: () => Promise<string> } => {
  const child = spawn(process.execPath, [...process.execArgv, import.meta.filename, role, directory, String(seed)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  return { child, line: async () => String((await lines.next()).value) };
};

const together = (): Promise<Measure[]> =>
  inDirectory(async directory => {
    const workers = Array.from({ length: PROCESSES }, (_, at) => startWorker(directory, 'worker', at + 1));
    await Promise.all(workers.map(({ line }) => line()));
    for (const { child } of workers) child.stdin?.write('go\n');
    return Promise.all(workers.map(async ({ line }) => JSON.parse(await line()) as Measure));
  });

const fairness = async (): Promise<void> => {
  console.log(`\n${PROCESSES} processes on one directory, 16 at a time each, ${ROUNDS} rounds of ${TOGETHER_MS} ms, medians`);
  const rounds: Measure[][] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await together());
  const rates = rounds.map(measures => measures.map(({ rate }) => rate));
  row(['', 'found', 'goal']);
  row(['slowest / fastest process', median(rates.map(all => Math.min(...all) / Math.max(...all))), '>= 0.5']);
  row(['begin p99 of the slowest process, ms', median(rounds.map(measures => Math.max(...measures.map(({ p99 }) => p99)))), '<= 300']);
  row(['pairs/s of all together', median(rates.map(all => all.reduce((sum, rate) => sum + rate, 0)))]);
};

/** ms from SIGKILL of an owner until another process knows that it is dead. */
const takeover = (): Promise<number> =>
  inDirectory(async directory => {
    const { child, line } = startWorker(directory, 'owner');
    const name = await line();
    const store = fileKeyStore(directory);
    await store.liveness(name);
    const before = performance.now();
    child.kill('SIGKILL');
    while ((await store.liveness(name)) !== 'dead') await new Promise(resolve => setTimeout(resolve, 1));
    const took = performance.now() - before;
    await store.close();
    return took;
  });

const takeovers = async (): Promise<void> => {
  const times: number[] = [];
  for (let round = 0; round < 3 * ROUNDS; round++) times.push(await takeover());
  console.log(`\ntakeover after kill -9, ${times.length} kills`);
  row(['', 'ms', 'goal']);
  row(['median', median(times)]);
  row(['longest', Math.max(...times), '<= 100']);
};

const OPEN = 1000;
const SETTLED = 100_000;

const fill = async (directory: string, settled: number): Promise<void> => {
  const store = fileKeyStore(directory);
  const writeAll = async (supply: readonly Operation[], toWrite: (operation: Operation) => Write): Promise<void> => {
    for (let at = 0; at < supply.length; at += 2000) await store.commit(supply.slice(at, at + 2000).map(toWrite), 'relaxed');
  };
  await writeAll(operations(OPEN, 1), ({ begun }) => ({ ref: begun, expect: 'absent', next: begun }));
  await writeAll(operations(settled, 2), ({ settled: head }) => ({ ref: head, expect: 'absent', next: { ...head, response: null } }));
  await store.close();
};

/** ms to open the store and read every open head, as a start does. */
const start = async (directory: string): Promise<number> => {
  const before = performance.now();
  const store = fileKeyStore(directory);
  const heads = await store.scan({ client: 'default', shelf: 'open', limit: OPEN + 1 });
  const took = performance.now() - before;
  if (heads.length !== OPEN) throw new Error(`${heads.length} open heads were found instead of ${OPEN}`);
  await store.close();
  return took;
};

const startUp = (): Promise<void> =>
  inDirectory(async few => {
    await inDirectory(async many => {
      await fill(few, 0);
      await fill(many, SETTLED);
      const times = { few: [] as number[], many: [] as number[] };
      for (let round = 0; round < 2 * ROUNDS + 1; round++) {
        times.few.push(await start(few));
        times.many.push(await start(many));
      }
      console.log(`\nopen + read ${OPEN} open heads, medians`);
      row(['', 'ms', 'goal']);
      row(['beside no settled head', median(times.few)]);
      row([`beside ${SETTLED} settled heads`, median(times.many)]);
      row(['ratio', median(times.many.map((took, round) => took / (times.few[round] as number))), '<= 1.5']);
    });
  });

const [role, directory = '', seed] = process.argv.slice(2);
if (role === 'worker') await worker(directory, Number(seed));
else if (role === 'owner') await owner(directory);
else {
  for (const concurrency of [1, 16, 256]) await alone(concurrency);
  await fairness();
  await takeovers();
  await startUp();
}
