import { systemClock } from '../clock.js';
import { skippedName, type TestRunner } from './contract.js';
import { facts } from './conformance/facts/index.js';
import { configFor, numberOf, skipReason, titleOf, type Fact } from './conformance/fact.js';
import type { ConformanceResult } from './conformance/result.js';
import { openStage } from './conformance/stage.js';
import type { ConformanceTarget } from './conformance/target.js';

export type { ConformanceResult } from './conformance/result.js';
export { conformanceTable } from './conformance/table.js';
export { createScenarios, scenarioGuard, type EffectLedger, type RunContext, type Scenarios } from './conformance/scenarios.js';
export { toNodeScenarioListener, type IncomingLike, type NodeScenarioListener, type OutgoingLike } from './conformance/node-listener.js';
export { TENANT_HEADER, type ScenarioReport } from './conformance/scenario.js';
export { PAGE_ORIGIN, type Ability, type ConformanceTarget, type Server, type ServerConfig, type StoreFault, type Subject, type Traits, type Verdict, type Words } from './conformance/target.js';

/** Long enough for a database under load; nothing is meant to take as long. */
const PATIENCE_MS = 20_000;

/** @throws Error that says what is not so */
const runFact = async (fact: Fact, target: ConformanceTarget): Promise<void> => {
  const { patience = PATIENCE_MS } = target;
  const over = new AbortController();
  const stage = await openStage(target, { config: configFor(fact, target), over: over.signal, patience });
  const late = systemClock.sleep(patience, over.signal).then(() => {
    throw new Error(`It was not settled after ${patience} ms: the server gave no answer, or never came to where the case waits for it.`);
  });
  try {
    await Promise.race([fact.run(stage), late]);
  } finally {
    over.abort();
    late.catch(() => {});
    await stage.dispose();
  }
};

const assertSkips = ({ name, skip = [] }: ConformanceTarget): void => {
  const unknown = skip.find(one => !facts.some(({ id }) => id === one.case));
  if (unknown) throw new Error(`${name} skips the fact '${unknown.case}', which does not exist. Take an id such as '14b' from the name of a fact.`);
  const silent = skip.find(({ reason }) => reason.trim() === '');
  if (silent) throw new Error(`${name} skips '${silent.case}' without a reason. Say why it cannot hold there.`);
};

/**
 * Tries the 60 cases of a dedup layer on a server, from outside: what it answers, and how often the handler behind it
 * runs. A case has several facts; one that the target lacks an ability for is skipped, with a reason.
 *
 * @example conformanceTable({ mine: await conformance({ name: 'mine', url: 'http://127.0.0.1:8080/conformance' }) })
 */
export const conformance = async (target: ConformanceTarget): Promise<ConformanceResult[]> => {
  assertSkips(target);
  const results: ConformanceResult[] = [];
  for (const fact of facts) {
    const common = { number: numberOf(fact), name: titleOf(fact) };
    const skipped = skipReason(fact, target);
    if (skipped !== undefined) {
      results.push({ ...common, outcome: 'skipped', reason: skipped });
      continue;
    }
    try {
      await runFact(fact, target);
      results.push({ ...common, outcome: 'passed' });
    } catch (error) {
      results.push({ ...common, outcome: 'failed', reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return results;
};

/** The same as tests of any runner, one for each fact. A skipped one shows its reason in its name. */
export const describeConformance = ({ describe, it }: TestRunner, target: ConformanceTarget): void => {
  assertSkips(target);
  describe(`conformance of ${target.name}`, () => {
    for (const fact of facts) {
      const reason = skipReason(fact, target);
      if (reason === undefined) it(titleOf(fact), () => runFact(fact, target));
      else it.skip(skippedName(titleOf(fact), reason), () => runFact(fact, target));
    }
  });
};
