import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { play } from './conductor.js';
import type { DemoEvent } from './events.js';
import { orders } from './orders.js';
import { openScreen } from './screen.js';
import { drawLegend, drawTimeline } from './timeline.js';
import { verdictOf, type Verdict } from './verdict.js';

const HELP = `npm run demo -- [options]

  --seed <number>      another plan of faults and kills (default 7)
  --without-samekey    the same shop with fetch, retries and a key in memory; shows double charges, ends with 0
  --ignore-keys        samekey and a server that does not look at keys; the verdict fails, ends with 1
`;

/** The play takes about 10 s. What hangs ends here, ms. */
const DEADLINE_MS = 80_000;

const say = (...lines: string[]): void => void process.stdout.write(`${lines.join('\n')}\n`);

interface Options {
  readonly seed: number;
  readonly withoutSamekey: boolean;
  readonly ignoreKeys: boolean;
}

/** @returns undefined when help was asked for. @throws TypeError for options that do not exist, or a seed that is no number */
const readOptions = (): Options | undefined => {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '7' },
      'without-samekey': { type: 'boolean', default: false },
      'ignore-keys': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(seed)) throw new TypeError(`--seed was "${values.seed}", which is not a whole number. Try --seed 8.`);
  return values.help ? undefined : { seed, withoutSamekey: values['without-samekey'], ignoreKeys: values['ignore-keys'] };
};

const sayVerdict = ({ ok, doubled, unknown, ...counts }: Verdict): void => {
  const { charges, keys, kills, requests } = counts;
  const mark = ok ? styleText(['bold', 'green'], '✓') : styleText(['bold', 'red'], '✗');
  say('', `${mark} ${styleText('bold', `${counts.orders} orders, ${charges} charges, ${keys} keys`)}, after ${kills} kills and ${requests} requests.`);
  if (ok) say('  One order, one key, one charge; and the shop knows every one of them.');
  if (doubled.length > 0) say(`  ${styleText('red', `${doubled.length} orders were charged more than once`)}: ${doubled.join(', ')}.`);
  if (unknown.length > 0) say(`  The shop does not know the charge of ${unknown.join(', ')}.`);
};

/** A fault of the plan is no fault of the demo: without samekey, double charges are what it is to show. */
const exitCodeOf = ({ ok }: Verdict, { withoutSamekey }: Options): number => (ok || withoutSamekey ? 0 : 1);

const describe = ({ withoutSamekey, ignoreKeys }: Options): string => {
  if (withoutSamekey) return 'without samekey';
  return ignoreKeys ? 'with samekey, at a server that ignores keys' : 'with samekey';
};

const main = async (options: Options, folder: string): Promise<void> => {
  const { seed, ignoreKeys } = options;
  say('', `A shop places ${orders.length} orders at a payment API, ${styleText('bold', describe(options))} (seed ${seed}).`, 'The network loses requests and answers, and the shop is killed again and again.', '');
  const events: DemoEvent[] = [];
  const ids = orders.map(({ id }) => id);
  const began = performance.now();
  const screen = openScreen(process.stdout, columns => [...drawTimeline(events, { orders: ids, columns, until: performance.now() - began }), '', ...drawLegend(columns)]);
  const tell = (event: DemoEvent): void => {
    events.push(event);
    screen.tell(event);
  };
  const shop = options.withoutSamekey ? 'shop-without-samekey.ts' : 'shop.ts';
  const receipts = await play({ seed, shop, ignoreKeys, folder, tell, signal: AbortSignal.timeout(DEADLINE_MS) }).finally(() => screen.end());
  const verdict = verdictOf(ids, events, receipts);
  sayVerdict(verdict);
  if (verdict.ok) say(styleText('dim', '  The same without it: npm run demo -- --without-samekey'));
  process.exitCode = exitCodeOf(verdict, options);
};

const run = async (): Promise<void> => {
  const options = readOptions();
  if (!options) return say(HELP);
  const folder = mkdtempSync(join(tmpdir(), 'samekey-demo-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.once('SIGINT', () => process.exit(130));
  return main(options, folder);
};

try {
  await run();
} catch (error) {
  process.stderr.write(`${styleText('red', 'The demo failed.')} ${String(error)}\n`);
  process.exitCode = 1;
}
