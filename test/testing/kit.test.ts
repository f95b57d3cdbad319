import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createDedup } from '../../src/server/index.js';
import { toNodeListener } from '../../src/server/adapters/node.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { conformance, conformanceTable, createScenarios, describeConformance, toNodeScenarioListener, type ConformanceResult, type ConformanceTarget, type Subject } from '../../src/testing/conformance.js';
import { facts } from '../../src/testing/conformance/facts/index.js';
import { bePatient } from '../support/patience.js';
import { listen } from '../server/support/serve-node.js';

bePatient();

const closing: (() => Promise<void> | undefined)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server that the kit knows by its URL only. */
const serve = async (): Promise<string> => {
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'everybody', on: { failed: () => {} } });
  const { handler } = createScenarios();
  const { origin = '', close } = await listen(createServer(toNodeListener(request => dedup.handle(request, handler, { name: 'scenario' }))));
  closing.push(() => close?.());
  return origin;
};

const outcomesOf = (results: readonly ConformanceResult[], outcome: ConformanceResult['outcome']): ConformanceResult[] => results.filter(result => result.outcome === outcome);

/** A target that never gets as far as a request. */
const unstartable = (traits: Partial<ConformanceTarget>): ConformanceTarget => ({ name: 'none', start: (): Subject => expect.fail('started'), ...traits }) as ConformanceTarget;

describe('the conformance kit', () => {
  it('has facts for all 60 cases, each with an id and a name of its own', () => {
    const numbers = new Set(facts.map(({ id }) => Number.parseInt(id, 10)));
    expect([...numbers].sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(new Set(facts.map(({ id }) => id)).size).toBe(facts.length);
    expect(new Set(facts.map(({ name }) => name)).size).toBe(facts.length);
  });

  it('tries a running server by its URL alone, twice as well as once, and says why it leaves facts out', async () => {
    const url = await serve();
    for (let time = 0; time < 2; time += 1) {
      const results = await conformance({ name: 'ours', url });
      expect(outcomesOf(results, 'failed')).toEqual([]);
      expect(outcomesOf(results, 'passed').length).toBeGreaterThan(80);
      for (const { reason } of outcomesOf(results, 'skipped')) expect(reason).toMatch(/^needs '/);
    }
  });

  it('tries a fetch-style server without a socket', async () => {
    const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'everybody', on: { failed: () => {} } });
    const { handler } = createScenarios();
    const results = await conformance({ name: 'ours', fetch: request => dedup.handle(request, handler, { name: 'scenario' }) });
    expect(outcomesOf(results, 'failed')).toEqual([]);
  });

  it('finds a server of node:http out that has no dedup layer at all', async () => {
    const listener = toNodeScenarioListener(createScenarios());
    const { origin = '', close } = await listen(createServer((incoming, outgoing) => void listener(incoming, outgoing)));
    closing.push(() => close?.());
    const results = await conformance({ name: 'bare', url: origin, patience: 2_000 });
    const holds = (id: string): boolean => results.find(({ name }) => name.startsWith(id))?.outcome === 'passed';
    expect(['11a', '26a', '32b', '46a', '47a'].filter(id => !holds(id))).toEqual([]);
    expect(['1a', '2a', '5a', '9a', '18a', '28a', '43a', '52a', '53b'].filter(holds)).toEqual([]);
  });

  it('says of a server without the scenario handler what is missing', async () => {
    const [first] = await conformance({ name: 'bare', fetch: async () => new Response(null, { status: 404 }), patience: 1_000 });
    expect(first).toMatchObject({ outcome: 'failed' });
    const results = await conformance({ name: 'bare', fetch: async () => new Response(null, { status: 404 }), patience: 200 });
    expect(results.filter(({ reason }) => reason?.includes('Mount it for every method and path')).length).toBeGreaterThan(10);
  });

  it('ends a fact whose server never answers', async () => {
    const results = await conformance({ name: 'silent', fetch: () => new Promise<never>(() => {}), patience: 5 });
    expect(outcomesOf(results, 'passed')).toEqual([]);
    expect(results[0]?.reason).toContain('not settled after 5 ms');
  });

  it('refuses to skip a fact that does not exist, or without a reason', () => {
    const runner = { describe: () => {}, it: Object.assign(() => {}, { skip: () => {} }) };
    expect(() => describeConformance(runner, unstartable({ skip: [{ case: '99z', reason: 'x' }] }))).toThrow(/'99z', which does not exist. Take an id such as '14b'/);
    expect(() => describeConformance(runner, unstartable({ skip: [{ case: '1a', reason: ' ' }] }))).toThrow(/'1a' without a reason/);
  });

  it('skips what a target cannot do, with the reason that it gives', async () => {
    const target = unstartable({ skip: facts.filter(({ needs }) => !needs?.includes('cors')).map(({ id }) => ({ case: id, reason: 'not now' })), cannot: { cors: 'is called by servers only' } });
    const results = await conformance(target);
    expect(outcomesOf(results, 'skipped')).toHaveLength(facts.length);
    expect(results.filter(({ number }) => number === 58).map(({ reason }) => reason)).toEqual(['is called by servers only', 'is called by servers only']);
  });

  it('fails a fact whose target has promised an ability that it has not', async () => {
    const { handler } = createScenarios();
    const results = await conformance({ name: 'boaster', abilities: ['time'], patience: 200, fetch: request => handler(request) });
    const [reason] = results.filter(({ number }) => number === 31).map(result => result.reason);
    expect(reason).toContain("needs 'advance', so it has it");
  });
});

describe('the conformance table', () => {
  const result = (name: string, outcome: ConformanceResult['outcome']): ConformanceResult => ({ number: Number.parseInt(name, 10), name, outcome });

  it('has a row per case and a column per server, and counts cases and facts', () => {
    const table = conformanceTable({
      good: [result('1a: x', 'passed'), result('1b: x', 'skipped'), result('2a: x', 'passed')],
      bad: [result('1a: x', 'failed'), result('1b, C7: x', 'failed'), result('2a: x', 'skipped')],
    });
    expect(table.split('\n')).toEqual([
      '| case | good | bad |',
      '| --- | --- | --- |',
      '| 1 | ✓ – | ✗ ab |',
      '| 2 | ✓ | – |',
      '| cases that hold | 2 of 2 | 0 of 1 |',
      '| facts that hold | 2 of 2 | 0 of 2 |',
    ]);
  });
});
