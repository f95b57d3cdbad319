import { chromium, firefox, type Page } from 'playwright';
import { launchOptions } from '../../test/browsers.js';
import type { Round, Timing } from './indexeddb-page.js';
import { serveScript } from '../../test/support/script-page.js';

/**
 * Durable begin + settle of the IndexedDB key store against idb-keyval's set() + update() in one browser, in interleaved
 * rounds. Ratios are taken inside a round, because the machine's speed wanders between rounds.
 *
 * node --import ./tools/resolve-ts.ts bench/keystore/indexeddb.ts [chromium|firefox] [rounds]
 */
const ROUNDS = 15;

/** Ratio to idb-keyval that the store is meant to reach: one strict flush per begin costs at 1, sharing one pays at more. */
const CASES = [
  { concurrency: 1, total: 60, goal: 0.8 },
  { concurrency: 16, total: 320, goal: 3 },
  { concurrency: 128, total: 640, goal: 5 },
] as const;

const measure = (page: Page, round: Round): Promise<Timing> =>
  page.evaluate(given => (globalThis as unknown as { run(round: Round): Promise<Timing> }).run(given), round);

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const compare = async (page: Page, { concurrency, total, goal }: (typeof CASES)[number], rounds: number): Promise<Record<string, unknown>> => {
  const pairs: { readonly own: Timing; readonly peer: Timing }[] = [];
  for (let round = 0; round < rounds; round++) {
    const peer = await measure(page, { contender: 'idb-keyval', concurrency, total });
    const own = await measure(page, { contender: 'samekey', concurrency, total });
    pairs.push({ own, peer });
  }
  const ratios = pairs.map(({ own, peer }) => own.operationsPerSecond / peer.operationsPerSecond);
  return {
    'at once': concurrency,
    'idb-keyval op/s': Math.round(median(pairs.map(({ peer }) => peer.operationsPerSecond))),
    'samekey op/s': Math.round(median(pairs.map(({ own }) => own.operationsPerSecond))),
    'begin p50 ms': Number(median(pairs.map(({ own }) => own.beginMs)).toFixed(2)),
    'set() p50 ms': Number(median(pairs.map(({ peer }) => peer.beginMs)).toFixed(2)),
    ratio: Number(median(ratios).toFixed(2)),
    spread: `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`,
    goal: `>= ${goal}`,
    met: median(ratios) >= goal ? 'yes' : 'NO',
  };
};

const name = process.argv[2] === 'firefox' ? 'firefox' : 'chromium';
const rounds = Number(process.argv[3] ?? ROUNDS);
const server = await serveScript(new URL('./indexeddb-page.ts', import.meta.url));
const browser = await (name === 'firefox' ? firefox : chromium).launch(launchOptions(name));
try {
  const page = await browser.newPage();
  await page.goto(server.url);
  // The first transactions of a browser pay for its start.
  for (const contender of ['samekey', 'idb-keyval'] as const) await measure(page, { contender, concurrency: 16, total: 200 });
  const rows: Record<string, unknown>[] = [];
  for (const one of CASES) rows.push(await compare(page, one, rounds));
  console.log(`\nIndexedDB key store in ${name} ${browser.version()}: strict begin + relaxed settle, median of ${rounds} rounds`);
  console.table(rows);
} finally {
  await browser.close();
  server.close();
}
