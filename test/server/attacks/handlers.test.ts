import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDedup, LeaseLostError, NoTransactionError, type DedupStore, type HandlerContext } from '../../../src/server/index.js';
import { memoryDedupStore } from '../../../src/server/stores/memory.js';
import { manualClock } from '../../support/manual-clock.js';
import { codeOf, endpointOf, requestOf, type Stage } from '../support/endpoint.js';

const stage = (): Stage => {
  const clock = manualClock();
  return { store: memoryDedupStore({ clock }), clock };
};

const rejections: unknown[] = [];
const note = (reason: unknown): void => void rejections.push(reason);
beforeEach(() => {
  rejections.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(() => process.off('unhandledRejection', note));

/** Node tells of them after the microtasks of a turn. */
const laterTurn = (): Promise<void> => new Promise(resolve => setImmediate(() => setImmediate(resolve)));

/** A store that lends connections, and notes which are out on loan. */
const lending = (store: DedupStore): { store: DedupStore & Required<Pick<DedupStore, 'transact'>>; lent: Set<object> } => {
  const lent = new Set<object>();
  const lend = async <T>(work: (connection: object) => Promise<T>): Promise<T> => {
    const connection = {};
    lent.add(connection);
    try {
      return await work(connection);
    } finally {
      lent.delete(connection);
    }
  };
  return { lent, store: { ...store, transact: work => lend(connection => work(connection, store.settle)) } };
};

/** The same in a mode that holds the key by its transaction. */
const holding = (store: DedupStore): { store: DedupStore; lent: Set<object> } => {
  const { store: inner, lent } = lending(store);
  const enter: NonNullable<DedupStore['enter']> = (claim, work) =>
    inner.transact(async connection => {
      const ending = await work({ open: async () => connection, fence: 1, attempt: 1, operationRef: 'ref', startEffect: async () => {} });
      return { kind: 'ended', ending, operationRef: claim.operationRef };
    });
  return { lent, store: { ...inner, enter } };
};

describe.each(Object.entries({ lending, holding }))('a handler that goes on after its answer, on a store that is %s', (_name, storeOf) => {
  it.each([false, true])('gets no connection that is somebody else’s by then; asked before: %s', async asked => {
    const { clock, store: plain } = stage();
    const { store, lent } = storeOf(plain);
    let context!: HandlerContext;
    const endpoint = endpointOf({ clock, store }, async (_request, given) => {
      context = given;
      if (asked) expect(lent.has((await given.transaction()) as object)).toBe(true);
      return new Response('done');
    });
    await endpoint.send({ key: 'k' });
    await expect(context.transaction()).rejects.toThrow(NoTransactionError);
    await expect(context.effectStarted()).rejects.toThrow(LeaseLostError);
    expect(lent.size).toBe(0);
  });
});

it('a handler that does not wait for its transaction ends no process when there is none', async () => {
  const { clock, store } = stage();
  const transact: DedupStore['transact'] = async () => Promise.reject(new Error('no connection'));
  const failures: unknown[] = [];
  const work = (_request: Request, context: HandlerContext): Response => {
    // oxlint-disable-next-line typescript/no-floating-promises -- the handler's fault
    context.transaction();
    return new Response('done');
  };
  const endpoint = endpointOf({ clock, store: { ...store, transact } }, work, { on: { failed: error => failures.push(error) } });
  expect((await endpoint.send({ key: 'k' })).status).toBe(500);
  await laterTurn();
  expect([failures, rejections]).toEqual([[new Error('no connection')], []]);
});

it('a listener of a purger that throws ends neither the process nor the purges', async () => {
  const { clock, store } = stage();
  let purges = 0;
  const failing: DedupStore = {
    ...store,
    purge: () => {
      purges += 1;
      return Promise.reject(new Error('down'));
    },
  };
  const dedup = createDedup({ store: failing, clock, scope: () => 'acme' });
  const error = console.error;
  const said: unknown[] = [];
  console.error = (_text: unknown, reason: unknown) => void said.push(reason);
  try {
    await using purger = dedup.startPurge({ every: 1000, onError: () => { throw new Error('logger'); } });
    expect(purger).toBeDefined();
    await laterTurn();
    await clock.advance(1000);
    await laterTurn();
  } finally {
    console.error = error;
  }
  expect([purges, said, rejections]).toEqual([2, [new Error('logger'), new Error('logger')], []]);
});

describe('a scope that is no text of its own', () => {
  const scopes: Record<string, (tenant: string) => unknown> = {
    'an object': tenant => ({ id: tenant }),
    'a number': tenant => tenant.length + 1,
    'half of a surrogate pair': () => '\uD800',
  };
  it.each(Object.keys(scopes))('serves nobody: %s', async name => {
    const endpoint = endpointOf(stage(), undefined, { scope: request => scopes[name]?.(request.headers.get('x-tenant') ?? '') as string });
    await expect(endpoint.send({ key: 'k', tenant: 'acme' })).rejects.toThrow(/^scope gave .* but text was expected/);
    expect(endpoint.runs).toBe(0);
  });

  it.each([undefined, null, ''])('is none: %s', async scope => {
    const endpoint = endpointOf(stage(), undefined, { scope: () => scope as string });
    const response = await endpoint.send({ key: 'k' });
    expect([response.status, await codeOf(response)]).toEqual([400, 'idempotency_scope_missing']);
  });
});

it('5: what an operator resolves with leaves no cookie, and nothing of its own connection, on a replay', async () => {
  const dedup = createDedup({ ...stage(), scope: () => 'acme', on: { failed: () => {} }, mayStore: name => name !== 'x-internal' });
  const call = () => dedup.handle(requestOf({ key: 'k' }), async (_request, context) => {
    await context.effectStarted();
    throw new Error('died');
  }, { name: 'charge' });
  await call();
  const headers = { 'content-type': 'text/plain', 'set-cookie': 'session=1', connection: 'close', 'content-length': '77', date: 'yesterday', 'x-internal': '1', etag: '"1"' };
  expect(await dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, { answer: new Response('ok', { status: 201, headers }) })).toBe(true);
  expect([...(await call()).headers.keys()]).toEqual(['content-type', 'etag', 'idempotency-status', 'idempotent-replayed']);
});
