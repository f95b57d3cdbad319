import { describe, expect, it, vi } from 'vitest';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { conformance, type ConformanceResult } from '../../src/testing/conformance.js';
import { inProcess } from '../server/support/serve.js';
import { dedupTarget, type StoreStage } from '../server/support/targets.js';
import { manualClock } from '../support/manual-clock.js';
import { answerMutants } from './mutants/answers.js';
import { comparisonMutants } from './mutants/comparisons.js';
import { doorMutants } from './mutants/doors.js';
import type { Mutant } from './mutants/mutant.js';
import { optionMutants } from './mutants/options.js';
import { storeMutants } from './mutants/stores.js';

// They wait most of the time.
vi.setConfig({ maxConcurrency: 12, testTimeout: 120_000 });

const MUTANTS: readonly Mutant[] = [...optionMutants, ...comparisonMutants, ...storeMutants, ...answerMutants, ...doorMutants];

/** ms after which a fact that waits for something that a mutant never does has failed. */
const PATIENCE_MS = 8_000;

const idOf = ({ name }: ConformanceResult): string => /^\d+[a-z]/.exec(name)?.[0] ?? name;

const memoryStage = (): StoreStage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

const run = ({ name, configure, store: spoil, handle }: Mutant): Promise<ConformanceResult[]> => {
  // Of the case that runs: they run one after the other.
  let stage = memoryStage();
  const create = (): StoreStage => {
    stage = memoryStage();
    return spoil ? { ...stage, store: spoil(stage) } : stage;
  };
  return conformance(dedupTarget(name, create, {
    patience: PATIENCE_MS,
    bulk: 1_100,
    configure: configure && (options => configure(options, stage)),
    serve: served => inProcess(handle ? { ...served, handle: handle(served, stage) } : served),
  }));
};

describe.concurrent('the conformance kit', () => {
  it('finds no fault in a server without one', async () => {
    const results = await run({ name: 'ours', fails: [] });
    expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  });

  it.each(MUTANTS)('finds a server out that $name', async mutant => {
    const results = await run(mutant);
    expect(results.filter(({ outcome }) => outcome === 'failed').map(idOf)).toEqual(mutant.fails);
  });

  it('has no fact that no fault can break', async () => {
    const tried = (await run({ name: 'ours', fails: [] })).filter(({ outcome }) => outcome !== 'skipped').map(idOf);
    const broken = new Set(MUTANTS.flatMap(({ fails }) => fails));
    expect(tried.filter(id => !broken.has(id))).toEqual([]);
  });
});
