import { skippedName, type TestRunner } from './contract.js';
import { assertReach } from './conformance/abilities.js';
import { factRunner, tell } from './conformance/fact-run.js';
import { facts } from './conformance/facts/index.js';
import { numberOf, skipReason, titleOf } from './conformance/fact.js';
import type { ConformanceResult } from './conformance/result.js';
import type { ConformanceTarget } from './conformance/target.js';

export type { ConformanceResult } from './conformance/result.js';
export { conformanceTable } from './conformance/table.js';
export { createScenarios, scenarioGuard, type EffectLedger, type RunContext, type Scenarios } from './conformance/scenarios.js';
export { toNodeScenarioListener, type IncomingLike, type NodeScenarioListener, type OutgoingLike } from './conformance/node-listener.js';
export { TENANT_HEADER, type ScenarioReport } from './conformance/scenario.js';
export { PAGE_ORIGIN, type Ability, type ConformanceTarget, type Server, type ServerConfig, type StoreFault, type Subject, type Traits, type Verdict, type Words } from './conformance/target.js';

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
 * @throws Error when a plain POST does not reach the handler, so that no case can be tried; when the target skips a fact
 * that does not exist, or names an ability that its kind cannot have
 * @example conformanceTable({ mine: await conformance({ name: 'mine', url: 'http://127.0.0.1:8080/conformance' }) })
 */
export const conformance = async (target: ConformanceTarget): Promise<ConformanceResult[]> => {
  assertSkips(target);
  assertReach(target);
  const { reached, run } = factRunner(target);
  const results: ConformanceResult[] = [];
  for (const fact of facts) {
    const common = { number: numberOf(fact), name: titleOf(fact) };
    const skipped = skipReason(fact, target);
    if (skipped !== undefined) {
      results.push({ ...common, outcome: 'skipped', reason: skipped });
      continue;
    }
    await reached();
    try {
      await run(fact);
      results.push({ ...common, outcome: 'passed' });
    } catch (error) {
      results.push({ ...common, outcome: 'failed', reason: tell(error) });
    }
  }
  return results;
};

/** The same as tests of any runner, one for each fact. A skipped one shows its reason in its name. */
export const describeConformance = ({ describe, it }: TestRunner, target: ConformanceTarget): void => {
  assertSkips(target);
  assertReach(target);
  const { run } = factRunner(target);
  describe(`conformance of ${target.name}`, () => {
    for (const fact of facts) {
      const reason = skipReason(fact, target);
      if (reason === undefined) it(titleOf(fact), () => run(fact));
      else it.skip(skippedName(titleOf(fact), reason), () => run(fact));
    }
  });
};
