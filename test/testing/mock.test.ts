import { http } from 'msw';
import { setupServer } from 'msw/node';
import { describe, it } from 'vitest';
import { createIdempotencyMock } from '../../src/msw/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { createScenarios, describeConformance, TENANT_HEADER, type ConformanceTarget, type Server, type ServerConfig, type Subject } from '../../src/testing/conformance.js';
import { manualClock } from '../support/manual-clock.js';
import { bePatient } from '../support/patience.js';

bePatient();

/** What a mock can be told; the rest is a server's. */
type MockConfig = Omit<ServerConfig, 'profile' | 'recover' | 'clockSkew' | 'latest'>;

const ENDPOINTS = ['charges', 'refunds'];

/** A mock behind the fetch of this process, for one case. */
const start = (): Subject => {
  const clock = manualClock();
  const store = memoryDedupStore({ clock });
  const scenarios = createScenarios();
  const network = setupServer();
  network.listen({ onUnhandledFrame: 'error' });

  const open = (config: MockConfig): Server => {
    const mock = createIdempotencyMock({ ...config, clock, store, principal: request => request.headers.get(TENANT_HEADER) ?? undefined });
    const resolverOf = (name: string) => mock.idempotent(({ request, idempotency }) => scenarios.handler(request, idempotency), { name, effects: config.effects });
    network.use(...ENDPOINTS.flatMap(name => [`https://shop.example/${name}`, `https://shop.example/${name}/*`].map(path => http.all(path, resolverOf(name)))));
    return {
      fetch: (request: Request) => fetch(request),
      loseAnswer: () => void mock.fault('charges', 'lose-response'),
      executions: () => mock.executions('charges'),
    };
  };

  return {
    open,
    report: id => scenarios.report(id),
    release: id => scenarios.release(id),
    advance: ms => clock.advance(ms),
    dispose: () => network.close(),
  };
};

const target: ConformanceTarget = {
  name: 'the mock behind MSW',
  abilities: [
    'mock', 'time', 'lose answer', 'tenants', 'announce', 'signal',
    'config required', 'config strict', 'config wait', 'config onExpired', 'config keyRetention', 'config maxRequestBytes', 'config effects',
  ],
  start,
};

describeConformance({ describe, it }, target);
