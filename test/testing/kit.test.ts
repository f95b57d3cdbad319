import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createDedup } from '../../src/server/index.js';
import { toNodeListener } from '../../src/server/adapters/node.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { conformance, conformanceTable, createScenarios, describeConformance, toNodeScenarioListener, type ConformanceResult, type ConformanceTarget, type Server, type Subject, type Traits } from '../../src/testing/conformance.js';
import { facts } from '../../src/testing/conformance/facts/index.js';
import type { TestRunner } from '../../src/testing/contract.js';
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

const NO_RUNNER: TestRunner = { describe: (_name, define) => define(), it: Object.assign(() => {}, { skip: () => {} }) };

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

  it('tries a running server on fresh connections, so that one which was started anew is no failure', async () => {
    const { handler } = createScenarios();
    const connections = new Set<string | undefined>();
    const listener = toNodeScenarioListener({ handler });
    const { origin = '', close } = await listen(createServer((incoming, outgoing) => {
      connections.add(incoming.headers.connection);
      void listener(incoming, outgoing);
    }));
    closing.push(() => close?.());
    await conformance({ name: 'any', url: origin, patience: 200 });
    expect([...connections]).toEqual(['close']);
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

  it('refuses to skip a fact that does not exist, or without a reason', () => {
    expect(() => describeConformance(NO_RUNNER, unstartable({ skip: [{ case: '99z', reason: 'x' }] }))).toThrow(/'99z', which does not exist. Take an id such as '14b'/);
    expect(() => describeConformance(NO_RUNNER, unstartable({ skip: [{ case: '1a', reason: ' ' }] }))).toThrow(/'1a' without a reason/);
  });

  it('skips what a target cannot do, with the reason that it gives', async () => {
    const target = unstartable({ skip: facts.filter(({ needs }) => !needs?.includes('cors')).map(({ id }) => ({ case: id, reason: 'not now' })), cannot: { cors: 'is called by servers only' } });
    const results = await conformance(target);
    expect(outcomesOf(results, 'skipped')).toHaveLength(facts.length);
    expect(results.filter(({ number }) => number === 58).map(({ reason }) => reason)).toEqual(['is called by servers only', 'is called by servers only']);
  });

  it('fails a fact whose target names an ability that it has not', async () => {
    const { handler } = createScenarios();
    const open = (): Server => ({ fetch: request => handler(request) });
    const results = await conformance({ name: 'boaster', abilities: ['time', 'shutdown', 'second server'], patience: 200, start: () => ({ open }) });
    const reasonOf = (id: string): string | undefined => results.find(({ name }) => name.startsWith(id))?.reason;
    expect(reasonOf('31a')).toBe("The target names the ability 'time', but what it starts has no advance(). Add that, or do not name the ability.");
    expect(reasonOf('44a')).toContain("'shutdown', but what it starts has no shutdown()");
  });

  it.each([['header lines', 'sendLines'], ['time', 'advance'], ['second server', 'open'], ['config wait', 'open'], ['store down', 'fail']] as const)(
    'says at once that nobody can do %s to a running server',
    async (ability, method) => {
      const named = { name: 'mine', abilities: ['tenants', ability] } as const;
      await expect(conformance({ ...named, url: 'http://127.0.0.1:1' })).rejects.toThrow(`mine names the ability '${ability}', which takes more than requests and answers: the kit would call ${method}(). Give \`start\` instead of \`url\``);
      expect(() => describeConformance(NO_RUNNER, { ...named, fetch: async () => Response.error() })).toThrow('instead of `fetch`');
    },
  );

  it('holds as many runs at once as the server is said to bear, and says where that was too many', async () => {
    const { handler } = createScenarios();
    const poor = async (request: Request): Promise<Response> => {
      if (request.method !== 'POST') return handler(request);
      connections -= 1;
      while (connections < 0) await sleep(1);
      return handler(request).finally(() => (connections += 1));
    };
    let connections = 10;
    const skip = facts.filter(({ id }) => id !== '32b').map(({ id }) => ({ case: id, reason: 'not now' }));
    const tried = async (traits: Partial<Traits>): Promise<ConformanceResult | undefined> =>
      outcomesOf(await conformance({ name: 'poor', fetch: poor, patience: 1_000, skip, ...traits }), traits.atOnce ? 'failed' : 'passed')[0];
    expect(await tried({})).toMatchObject({ number: 32 });
    expect((await tried({ atOnce: 11 }))?.reason).toMatch(/not settled after 1000 ms.*hold.* a connection of a pool, say in `atOnce`/);
  });
});

describe('before the first case, the conformance kit', () => {
  const ours = (scope: (request: Request) => string | undefined): ((request: Request) => Promise<Response>) => {
    const dedup = createDedup({ store: memoryDedupStore(), scope, on: { failed: () => {} } });
    const { handler } = createScenarios();
    return request => dedup.handle(request, handler, { name: 'scenario' });
  };

  it('says once what a plain POST met when its layer does not know whose it is', async () => {
    const tried = conformance({ name: 'mine', fetch: ours(request => request.headers.get('x-user') ?? undefined) });
    await expect(tried).rejects.toThrow(/^No case can be tried on mine\. It answered 400 \{.*idempotency_scope_missing.* to a plain POST of \/charges, and the scenario handler never ran\. Does the layer find its tenant .* in the header scenario-tenant \(TENANT_HEADER\)/);
  });

  it('does not mind a refusal of its own requests when the handler has run', async () => {
    const { handler } = createScenarios();
    const fetch = async (request: Request): Promise<Response> => {
      const answer = await handler(request);
      return request.method === 'POST' ? new Response(null, { status: 500 }) : answer;
    };
    const results = await conformance({ name: 'odd', fetch, patience: 200 });
    expect(outcomesOf(results, 'failed').length).toBeGreaterThan(10);
  });

  it('says of a server without the scenario handler what is missing', async () => {
    const tried = conformance({ name: 'bare', fetch: async () => new Response(null, { status: 404 }), patience: 1_000 });
    await expect(tried).rejects.toThrow(/It answered 404 to a plain POST.*cannot be asked whether it ran.*Mount it for every method and path/);
  });

  it('says of a server that never answers that it does not', async () => {
    const tried = conformance({ name: 'silent', fetch: () => new Promise<never>(() => {}), patience: 5 });
    await expect(tried).rejects.toThrow(/^No case can be tried on silent\. It was not settled after 5 ms/);
  });

  it('says of a server that nobody has started why it cannot be reached', async () => {
    await expect(conformance({ name: 'away', url: 'http://127.0.0.1:1' })).rejects.toThrow(/^No case can be tried on away\. fetch failed \(.+\)/);
  });

  it('fails each test with that, and asks only once', async () => {
    let requests = 0;
    const tests: (() => Promise<void>)[] = [];
    const add = Object.assign((_name: string, run: () => Promise<void>) => tests.push(run), { skip: () => {} });
    const fetch = async (request: Request): Promise<Response> => {
      if (request.method === 'POST') requests += 1;
      return new Response('no', { status: 403 });
    };
    describeConformance({ describe: (_name, define) => define(), it: add }, { name: 'closed', fetch, patience: 100 });
    expect(tests.length).toBeGreaterThan(80);
    for (const run of tests) await expect(run()).rejects.toThrow('It answered 403 no to a plain POST');
    expect(requests).toBe(1);
  });
});

describe('a fact about a status', () => {
  it('names the word that a server can say its own status in, and does not where it refused nothing', async () => {
    const { handler } = createScenarios();
    const seen = new Set<string | null>();
    const conflict = async (request: Request): Promise<Response> => {
      const key = request.headers.get('idempotency-key');
      if (request.method === 'POST' && (key === null || seen.has(key))) return new Response(null, { status: 418 });
      seen.add(key);
      return handler(request);
    };
    const results = await conformance({ name: 'odd', fetch: conflict, patience: 200 });
    const reasonOf = (id: string): string | undefined => results.find(({ name }) => name.startsWith(id))?.reason;
    expect(reasonOf('1a')).toBe('Not so: a request without a key is answered with 400 (or name your status in words.missing)\n  found    418');
    expect(reasonOf('14a')).toMatch(/answered with 400\n  found    201/);
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
      '',
      '✓ all facts of the case hold · ✓ – those that could be tried hold, others could not be tried · ✗ ab the facts a and b do not hold · – none could be tried',
    ]);
  });
});
