import { styleText } from 'node:util';
import type { DemoEvent } from './events.js';
import { killsIn, storyOf, type Mark, type OrderStory, type Sign } from './story.js';

type Style = Parameters<typeof styleText>[0];

interface Look {
  readonly glyph: string;
  readonly style: Style;
}

const LOOKS: { readonly [S in Sign]: Look } = {
  sent: { glyph: '›', style: 'dim' },
  charged: { glyph: '●', style: 'green' },
  'charged, not heard': { glyph: '◐', style: 'yellow' },
  replayed: { glyph: '↺', style: 'cyan' },
  'replayed, not heard': { glyph: '◌', style: 'cyan' },
  'still at work': { glyph: '…', style: 'dim' },
  nothing: { glyph: '×', style: 'red' },
  killed: { glyph: '†', style: ['bold', 'red'] },
};

const LEGEND: readonly (readonly [Sign, meaning: string])[] = [
  ['charged', 'charged'],
  ['charged, not heard', 'charged, answer lost'],
  ['replayed', 'replayed'],
  ['replayed, not heard', 'replay lost'],
  ['still at work', 'still at work'],
  ['nothing', 'never arrived, or 503'],
  ['killed', 'shop killed'],
];

/** Columns of text left and right of the chart. */
const LABEL_WIDTH = 10;
const RESULT_WIDTH = 31;

/** One column is at least this long, ms, so that a young chart grows instead of jumping. */
const FINEST_COLUMN_MS = 60;

const paint = ({ glyph, style }: Look): string => styleText(style, glyph);

/** A line from the first mark to the last; a mark whose column is taken moves to the right. */
const drawMarks = (marks: readonly Mark[], width: number, columnMs: number): string => {
  const cells: string[] = Array.from({ length: width }, () => ' ');
  let free = 0;
  let start: number | undefined;
  for (const { at, sign } of marks) {
    const column = Math.min(Math.max(free, Math.floor(at / columnMs)), width - 1);
    for (let between = free; start !== undefined && between < column; between += 1) cells[between] = styleText('dim', '─');
    cells[column] = paint(LOOKS[sign]);
    start ??= column;
    free = column + 1;
  }
  return cells.join('');
};

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const resultOf = ({ charges, requests, keys }: OrderStory): string => {
  if (requests === 0) return '';
  const charged = charges.length > 1 ? styleText(['bold', 'red'], `charged ${charges.length}×`) : charges.length === 1 ? styleText('green', charges[0] ?? '') : styleText('dim', '…');
  return `${charged} ${styleText('dim', `sent ${requests}×, ${plural(keys.size, 'key')}`)}`;
};

const axis = (width: number, columnMs: number): string => {
  let line = '';
  for (let second = 0; ; second += 1) {
    const column = Math.floor((second * 1_000) / columnMs);
    const label = `${second}s`;
    if (column + label.length > width) return line.padEnd(width);
    if (second === 0 || column > line.length + 1) line = line.padEnd(column) + label;
  }
};

export interface TimelineOptions {
  readonly orders: readonly string[];
  /** Columns of the terminal. */
  readonly columns: number;
  /** ms since the demo began. */
  readonly until: number;
}

/** One line per order, on one time axis. */
export const drawTimeline = (events: readonly DemoEvent[], { orders, columns, until }: TimelineOptions): string[] => {
  const width = columns - LABEL_WIDTH - RESULT_WIDTH;
  const columnMs = Math.max(FINEST_COLUMN_MS, (until + 1) / width);
  const kills = killsIn(events).map((at): Mark => ({ at, sign: 'killed' }));
  const rows = orders.map(order => {
    const story = storyOf(order, events);
    return `${order.padEnd(LABEL_WIDTH)}${drawMarks(story.marks, width, columnMs)} ${resultOf(story)}`;
  });
  const killRow = drawMarks(kills, width, columnMs).replaceAll('─', ' ');
  return [styleText('dim', `${''.padEnd(LABEL_WIDTH)}${axis(width, columnMs)}`), `${'kills'.padEnd(LABEL_WIDTH)}${killRow}`, ...rows];
};

/** What the marks mean, in lines of at most `columns`. */
export const drawLegend = (columns: number): string[] => {
  const lines: { text: string; length: number }[] = [];
  for (const [sign, meaning] of LEGEND) {
    const length = LOOKS[sign].glyph.length + 1 + meaning.length;
    const line = lines.at(-1);
    const entry = `${paint(LOOKS[sign])} ${styleText('dim', meaning)}`;
    if (!line || line.length + 3 + length > columns) lines.push({ text: entry, length });
    else lines[lines.length - 1] = { text: `${line.text}   ${entry}`, length: line.length + 3 + length };
  }
  return lines.map(({ text }) => text);
};
