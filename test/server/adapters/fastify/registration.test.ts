import fastify, { type FastifyInstance } from 'fastify';
import { describe, expect, it } from 'vitest';
import { idempotency } from '../../../../src/server/adapters/fastify.js';
import { dedupOf, replayed } from '../serving.js';

const CONFIG = { config: { idempotency: { name: 'charge' } } };
const TOO_EARLY = 'has config.idempotency, but was added before the plugin idempotency was loaded, so nothing protects it, and it is refused. Load the plugin first, and wait for it';

/** A route that counts, and what a request to it comes to. */
const counting = (): { readonly runs: number; add(app: FastifyInstance, path?: string, options?: object): void } => {
  let runs = 0;
  return {
    get runs() {
      return runs;
    },
    add: (app, path = '/charges', options = CONFIG) => void app.post(path, options, async () => ({ run: (runs += 1) })),
  };
};

const send = async (app: FastifyInstance, url = '/charges'): Promise<{ status: number; body: string; isReplay: boolean }> => {
  const { statusCode: status, body, headers } = await app.inject({ method: 'POST', url, headers: { 'idempotency-key': `key-of-${url.slice(1)}` }, payload: { amount: 1 } });
  return { status, body, isReplay: replayed(new Response(null, { headers: headers as Record<string, string> })) };
};

describe('Fastify: the plugin after its routes', () => {
  it.each<[string, (app: FastifyInstance, add: (app: FastifyInstance) => void) => unknown]>([
    ['a route before it', (app, add) => (add(app), app.register(idempotency, { dedup: dedupOf() }))],
    ['a route after a registration that nobody awaits', (app, add) => (void app.register(idempotency, { dedup: dedupOf() }), add(app))],
    ['a plugin of routes before it', (app, add) => (void app.register(async child => add(child)), app.register(idempotency, { dedup: dedupOf() }))],
    [
      'a plugin of routes in one of routes before it',
      (app, add) => (void app.register(async child => void child.register(async grandchild => add(grandchild))), app.register(idempotency, { dedup: dedupOf() })),
    ],
  ])('%s is refused, loudly, instead of running unprotected', async (_how, set) => {
    const app = fastify();
    const route = counting();
    await set(app, route.add);
    for (let sent = 0; sent < 2; sent += 1) {
      const { status, body } = await send(app);
      expect(status).toBe(500);
      expect((JSON.parse(body) as { message: string }).message).toMatch(`The route POST /charges ${TOO_EARLY}`);
    }
    expect(route.runs).toBe(0);
    await app.close();
  });

  it('other routes before it, and its own after it, go on as ever', async () => {
    const app = fastify();
    const [free, own] = [counting(), counting()];
    free.add(app, '/free', {});
    void app.register(async child => free.add(child, '/child', {}));
    await app.register(idempotency, { dedup: dedupOf() });
    own.add(app);
    void app.register(async child => own.add(child, '/deep'));
    expect([await send(app, '/free'), await send(app, '/child')].map(({ status }) => status)).toEqual([200, 200]);
    for (const url of ['/charges', '/deep']) expect([(await send(app, url)).isReplay, (await send(app, url)).isReplay], url).toEqual([false, true]);
    expect((await send(app, '/nowhere')).status).toBe(404);
    await app.close();
  });

  it('a sibling scope with routes of its own is no business of a plugin in another', async () => {
    const app = fastify();
    const route = counting();
    void app.register(async child => route.add(child, '/sibling'));
    void app.register(async child => {
      await child.register(idempotency, { dedup: dedupOf() });
      child.post('/charges', CONFIG, request => Promise.resolve(request.url));
    });
    expect([(await send(app, '/sibling')).status, route.runs]).toEqual([200, 1]);
    await app.close();
  });
});

it.each([
  [undefined, 'The dedup that the plugin idempotency was given is undefined; what createDedup({ store, scope }) makes was expected.'],
  [{ store: {} }, 'The dedup that the plugin idempotency was given is an object; what createDedup({ store, scope }) makes was expected.'],
])('Fastify: the plugin without a dedup is refused when the server gets ready: %o', async (dedup, message) => {
  const app = fastify();
  void app.register(idempotency, { dedup } as never);
  await expect(app.ready()).rejects.toThrow(new TypeError(message));
});

it('Fastify: a misspelt word in config.idempotency is refused when the route is added', async () => {
  const app = fastify();
  await app.register(idempotency, { dedup: dedupOf() });
  const add = (options: object) => (): unknown => app.post('/charges', { config: { idempotency: { name: 'charge', ...options } } }, async () => 'x');
  expect(add({ efects: 'idempotent' })).toThrow('config.idempotency has no option "efects". Look for a misspelt word: it has name, effects.');
  expect(add({ effects: 'none' })).toThrow(`config.idempotency: effects is "none"; it can be 'external', 'marked', 'idempotent'.`);
  await app.close();
});
