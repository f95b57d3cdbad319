import type { ConformanceResult } from './result.js';

/** How the facts of one case are told in one cell: what failed counts most, then what passed. */
const cellOf = (results: readonly ConformanceResult[]): string => {
  const having = (outcome: ConformanceResult['outcome']): ConformanceResult[] => results.filter(result => result.outcome === outcome);
  const failed = having('failed').map(({ name }) => /^\d+([a-z]+)/.exec(name)?.[1] ?? '');
  if (failed.length > 0) return `✗ ${failed.join('')}`;
  if (having('passed').length === 0) return '–';
  return having('skipped').length > 0 ? '✓ –' : '✓';
};

const numbersOf = (columns: readonly (readonly ConformanceResult[])[]): number[] =>
  [...new Set(columns.flatMap(results => results.map(({ number }) => number)))].sort((a, b) => a - b);

const totalOf = (results: readonly ConformanceResult[]): string => {
  const cells = numbersOf([results]).map(number => cellOf(results.filter(result => result.number === number)));
  const passed = cells.filter(cell => cell.startsWith('✓')).length;
  const failed = cells.filter(cell => cell.startsWith('✗')).length;
  return `${passed} of ${passed + failed}`;
};

const factsOf = (results: readonly ConformanceResult[]): string => {
  const tried = results.filter(({ outcome }) => outcome !== 'skipped');
  return `${tried.filter(({ outcome }) => outcome === 'passed').length} of ${tried.length}`;
};

const LEGEND = '✓ all facts of the case hold · ✓ – those that could be tried hold, others could not be tried · ✗ ab the facts a and b do not hold · – none could be tried';

/**
 * Case × server, in Markdown, and what its signs mean.
 *
 * @param servers - results by the name of the server
 */
export const conformanceTable = (servers: Readonly<Record<string, readonly ConformanceResult[]>>): string => {
  const names = Object.keys(servers);
  const columns = Object.values(servers);
  const rows = numbersOf(columns).map(number => [String(number), ...columns.map(results => cellOf(results.filter(result => result.number === number)))]);
  const lines = [['case', ...names], ['---', ...names.map(() => '---')], ...rows, ['cases that hold', ...columns.map(totalOf)], ['facts that hold', ...columns.map(factsOf)]];
  return [...lines.map(cells => `| ${cells.join(' | ')} |`), '', LEGEND].join('\n');
};
