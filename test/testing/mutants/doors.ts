import type { Served, StoreStage } from '../../server/support/targets.js';
import { behind, codeOf, isReplay, keyOf, withHeader, type Handle, type Mutant } from './mutant.js';

/** Changes what goes out. */
const answering = (change: (response: Response, request: Request) => Response | Promise<Response>) => ({ handle }: { handle: Handle }): Handle =>
  async request => change(await handle(request), request);

/** Changes what comes in. */
const asking = (change: (request: Request) => Request) => ({ handle }: { handle: Handle }): Handle => async request => handle(change(request));

const withKey = (change: (key: string) => string) =>
  asking(request => (request.headers.has('idempotency-key') ? withHeader(request, 'idempotency-key', change(keyOf(request))) : request));

/** Headers of the first answer that come again on replays. */
const repeating = (name: string) => ({ handle }: { handle: Handle }): Handle => {
  const seen = new Map<string, string>();
  return async request => {
    const response = await handle(request);
    const value = response.headers.get(name);
    if (!isReplay(response) && value !== null) seen.set(keyOf(request), value);
    const first = seen.get(keyOf(request));
    if (isReplay(response) && first !== undefined) response.headers.append(name, first);
    return response;
  };
};

/** The guard stands where the handler does. */
const guardInside = (served: Served): Handle => {
  const { guard, scenarios } = served;
  return behind({ ...served, guard: () => undefined }, async (request, context) => guard(request) ?? scenarios.handler(request, context));
};

const freeing = ({ handle }: Served, { store }: StoreStage): Handle => async request => {
  const tenant = request.headers.get('scenario-tenant') ?? '';
  const ref = { scope: `${tenant.length}:${tenant}7:charges`, key: keyOf(request) };
  const free = async (): Promise<void> => {
    const row = await store.get(ref);
    if (row) await store.settle({ ...ref, owner: row.owner, fence: row.fence }, { to: 'retryable', keepFingerprint: true, keyRetention: 1_000_000 });
  };
  request.signal.addEventListener('abort', () => void free(), { once: true });
  return handle(request);
};

/** The client hears of what went wrong with the record. */
const failingLoudly = (): Mutant => {
  let failed = false;
  return {
    name: 'answers 500 when an end could not be written at once',
    fails: ['42a', '42b', '42c', '42d'],
    configure: options => ({
      ...options,
      store: {
        ...options.store,
        async claim(claim) {
          failed = false;
          return options.store.claim(claim);
        },
        async settle(hold, end) {
          return options.store.settle(hold, end).catch(error => {
            failed = true;
            throw error;
          });
        },
      },
    }),
    handle: answering(response => (failed ? new Response(null, { status: 500 }) : response)),
  };
};

/** Faults between the wire and the engine. */
export const doorMutants: readonly Mutant[] = [
  {
    name: 'stores the refusal of a run in progress',
    fails: ['28a', '29b', '34a', '35d', '35e', '35g', '35h', '43a', '56a', '56b'],
    handle({ handle }) {
      const stored = new Map<string, Response>();
      return async request => {
        const known = stored.get(keyOf(request));
        if (known) return known.clone();
        const response = await handle(request);
        if ((await codeOf(response)) === 'idempotency_in_progress') stored.set(keyOf(request), response.clone());
        return response;
      };
    },
  },
  { name: 'replays cookies', fails: ['5a'], handle: repeating('set-cookie') },
  { name: 'replays the date', fails: ['6a'], handle: repeating('date') },
  { name: 'replays the id of the request', fails: ['5b'], handle: repeating('x-request-id') },
  { name: 'marks every answer as a replay', fails: ['3a', '11a', '46d', '51a'], handle: answering(response => (response.headers.set('idempotent-replayed', 'true'), response)) },
  { name: 'marks no replay', fails: ['2b', '3a', '35e', '46d', '58b'], handle: answering(response => (response.headers.delete('idempotent-replayed'), response)) },
  { name: 'says nothing of what it stores', fails: ['1d', '2c', '11b', '42d', '49c'], handle: answering(response => (response.headers.delete('idempotency-status'), response)) },
  { name: 'names no time in refusals', fails: ['29a', '29c', '49b'], handle: answering(response => (response.headers.delete('retry-after'), response)) },
  { name: 'lets pages see nothing', fails: ['58b'], handle: answering(response => (response.headers.delete('access-control-expose-headers'), response)) },
  { name: 'lets pages send no key', fails: ['58a'], handle: answering(response => (response.headers.delete('access-control-allow-headers'), response)) },
  { name: 'takes keys of either case for one', fails: ['17a'], handle: withKey(key => key.toLowerCase()) },
  { name: 'keeps the first 36 characters of a key', fails: ['12a', '12b', '12c', '14c', '16a', '17a', '26a', '32b', '54f'], handle: withKey(key => key.slice(0, 36)) },
  { name: 'takes the first of two keys', fails: ['13a', '13b', '13c'], handle: withKey(key => key.split(',')[0] ?? '') },
  { name: 'takes quotes for a part of the key', fails: ['12a', '12c', '13a', '13b', '13c', '14b', '14e', '14f', '14g', '14h', '14i', '14j', '14k', '57a', '57b'], handle: withKey(key => encodeURIComponent(key)) },
  {
    name: 'ignores a key that it cannot read',
    fails: ['12c', '13a', '13b', '13c', '14a', '14b', '14c', '14d', '14e', '14f', '14g', '14h', '14i', '14j', '14k', '57a', '57b'],
    handle: ({ handle, scenarios }) => async request => {
      const response = await handle(request.clone());
      return (await codeOf(response)) === 'idempotency_key_invalid' ? scenarios.handler(request) : response;
    },
  },
  { name: 'asks the guard after the engine', fails: ['51a'], handle: guardInside },
  {
    name: 'stores what its guard says',
    fails: ['48a', '51a'],
    handle({ handle, guard }) {
      const stored = new Map<string, Response>();
      return async request => {
        const refused = stored.get(keyOf(request)) ?? guard(request);
        if (refused) stored.set(keyOf(request), refused);
        return refused?.clone() ?? handle(request);
      };
    },
  },
  { name: 'frees a key when its client goes away', fails: ['43a'], handle: freeing },
  { name: 'takes every failure for one of the same kind', fails: ['47c'], handle: served => behind(served, async (request, context) => served.scenarios.handler(request, context).catch(() => Promise.reject(new Error('some failure')))) },
  { name: 'tells no handler that it has lost its key', fails: ['40b'], handle: served => behind(served, (request, context) => served.scenarios.handler(request, { ...context, signal: new AbortController().signal })) },
  {
    name: 'takes no body for another body than an empty one',
    fails: ['27a'],
    handle: asking(request => (request.method === 'POST' && request.body === null ? new Request(`${request.url}?none`, request) : request)),
  },
  {
    name: 'goes down without waiting for its runs',
    fails: ['44a'],
    handle: ({ handle, dedup }) => (Object.assign(dedup, { idle: async () => {} }), handle),
  },
  failingLoudly(),
  {
    name: 'lets keys wait for each other',
    fails: ['32a', '32b', '57a', '57b'],
    handle({ handle }) {
      const running = new Map<string, Promise<unknown>>();
      return async request => {
        const others = [...running].filter(([key]) => key !== keyOf(request) && request.method === 'POST');
        const answered = Promise.allSettled(others.map(([, run]) => run)).then(() => handle(request));
        running.set(keyOf(request), answered);
        answered.finally(() => running.delete(keyOf(request))).catch(() => {});
        return answered;
      };
    },
  },
  {
    name: 'refuses whom it could replay, while the first answer is not read',
    fails: ['30a', '53d'],
    handle({ handle }) {
      const open = new Set<string>();
      return async request => {
        if (open.has(keyOf(request))) return new Response(null, { status: 409 });
        const response = await handle(request);
        if (isReplay(response) || !response.body || response.status >= 400) return response;
        open.add(keyOf(request));
        const [mine, watched] = response.body.tee();
        void new Response(watched).arrayBuffer().catch(() => {});
        const reader = mine.pipeThrough(new TransformStream({ flush: () => void open.delete(keyOf(request)) }));
        return new Response(reader, response);
      };
    },
  },
];
