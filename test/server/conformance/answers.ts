import { expect } from 'vitest';
import { RetryableError } from '../../../src/server/index.js';
import { stripe } from '../../../src/profiles/stripe.js';
import { codeOf, endpointOf, gate, isReplay, type Conformance } from './stage.js';

const fail = (): never => {
  throw new TypeError('boom');
};

export const answers: readonly Conformance[] = [
  {
    name: '45: refusals of the handler are stored, whatever they say',
    async run(stage) {
      for (const status of [400, 402, 404, 409, 410, 412, 422]) {
        const endpoint = endpointOf(stage, () => Response.json({ status }, { status }));
        await endpoint.send({ key: `k${status}` });
        const again = await endpoint.send({ key: `k${status}` });
        expect([again.status, isReplay(again), endpoint.runs]).toEqual([status, true, 1]);
      }
    },
  },
  {
    name: '46: 408 and server errors are not stored; the same request runs again, another is refused',
    async run(stage) {
      for (const status of [408, 500, 502, 503, 504]) {
        const endpoint = endpointOf(stage, (_request, { attempt }) => new Response(null, { status: attempt === 1 ? status : 201 }));
        const first = await endpoint.send({ key: `k${status}` });
        expect([first.status, first.headers.get('idempotency-status')]).toEqual([status, null]);
        expect((await endpoint.send({ key: `k${status}`, body: '{}' })).status).toBe(422);
        expect([(await endpoint.send({ key: `k${status}` })).status, endpoint.runs]).toEqual([201, 2]);
      }
    },
  },
  {
    name: '46: who was turned away at the door may come back with any body',
    async run(stage) {
      for (const status of [401, 403, 407, 421, 423, 425, 429, 431]) {
        const endpoint = endpointOf(stage, (_request, { attempt }) => new Response(null, { status: attempt === 1 ? status : 201 }));
        expect((await endpoint.send({ key: `k${status}` })).status).toBe(status);
        expect((await endpoint.send({ key: `k${status}`, body: '{"corrected":true}' })).status).toBe(201);
      }
    },
  },
  {
    name: '46: in Stripe’s dialect every answer is stored once execution began, a 500 too, with its verdict',
    async run(stage) {
      const endpoint = endpointOf(stage, () => Response.json({ error: { type: 'api_error' } }, { status: 500 }), { profile: stripe });
      const first = await endpoint.send({ key: 'k' });
      const again = await endpoint.send({ key: 'k' });
      expect([first.status, first.headers.get('stripe-should-retry'), isReplay(first)]).toEqual([500, 'false', false]);
      expect([again.status, again.headers.get('stripe-should-retry'), isReplay(again), endpoint.runs]).toEqual([500, 'false', true, 1]);
      expect(again.headers.has('idempotency-status')).toBe(false);
      const thrown = endpointOf(stage, fail, { profile: stripe });
      const [one, two] = [await thrown.send({ key: 'k2' }), await thrown.send({ key: 'k2' })];
      expect([one.status, two.status, await two.text() === await one.text(), thrown.runs]).toEqual([500, 500, true, 1]);
    },
  },
  {
    name: 'Stripe’s words for reuse, concurrency and a missing key',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async () => opened.then(() => new Response('ok')), { profile: stripe });
      const first = endpoint.send({ key: 'k' });
      await expect.poll(() => endpoint.runs).toBe(1);
      const conflict = await endpoint.send({ key: 'k' });
      expect([conflict.status, conflict.headers.get('stripe-should-retry')]).toEqual([409, 'true']);
      expect(await conflict.json()).toMatchObject({ error: { code: 'idempotency_key_in_use' } });
      const reuse = await endpoint.send({ key: 'k', body: '{}' });
      expect([reuse.status, reuse.headers.get('stripe-should-retry')]).toEqual([400, 'false']);
      expect(await reuse.json()).toMatchObject({ error: { type: 'idempotency_error' } });
      open();
      await first;
      expect((await endpoint.send()).status).toBe(200);
    },
  },
  {
    name: '47: what a handler throws is a 500, is reported, and frees the key for the same request',
    async run(stage) {
      const failures: unknown[] = [];
      const endpoint = endpointOf(stage, (_request, { attempt }) => (attempt === 1 ? fail() : new Response('ok')), { on: { failed: error => failures.push(error) } });
      const response = await endpoint.send({ key: 'k' });
      expect([response.status, await codeOf(response)]).toEqual([500, 'handler_failed']);
      expect(failures).toEqual([new TypeError('boom')]);
      expect([(await endpoint.send({ key: 'k' })).status, endpoint.runs]).toEqual([200, 2]);
    },
  },
  {
    name: '47: a failure after an announced effect leaves doubt, unless the handler knows better',
    async run(stage) {
      const doubtful = endpointOf(stage, async (_request, context) => (await context.effectStarted(), fail()));
      expect((await doubtful.send({ key: 'k1' })).status).toBe(500);
      expect(await codeOf(await doubtful.send({ key: 'k1' }))).toBe('idempotency_indeterminate');
      const answered = endpointOf(stage, async (_request, context) => (await context.effectStarted(), new Response(null, { status: 502 })));
      expect((await answered.send({ key: 'k2' })).status).toBe(502);
      expect(await codeOf(await answered.send({ key: 'k2' }))).toBe('idempotency_indeterminate');
      const undone = endpointOf(stage, async (_request, context, run) => {
        if (run > 1) return new Response('ok');
        await context.effectStarted();
        throw new RetryableError('The charge was refunded at once.');
      });
      await undone.send({ key: 'k3' });
      expect([(await undone.send({ key: 'k3' })).status, undone.runs]).toEqual([200, 2]);
    },
  },
  {
    name: '48, 51: a guard around the engine answers before it, and before replays',
    async run(stage) {
      let allowed = false;
      const endpoint = endpointOf(stage);
      const guarded = async (): Promise<Response> => (allowed ? endpoint.send({ key: 'k' }) : new Response('no', { status: 401 }));
      expect((await guarded()).status).toBe(401);
      allowed = true;
      expect((await guarded()).status).toBe(201);
      allowed = false;
      const refused = await guarded();
      expect([refused.status, await refused.text(), isReplay(refused)]).toEqual([401, 'no', false]);
    },
  },
  {
    name: '50, C84: two tenants, and two endpoints, with the same key are strangers; nobody is everybody',
    async run(stage) {
      const endpoint = endpointOf(stage, (_request, { scope, name }) => Response.json({ scope, name }));
      const answersOf = async (tenant: string, name: string): Promise<unknown> => (await endpoint.send({ key: 'k', tenant, name })).json();
      for (const [tenant, name] of [['a', 'orders'], ['b', 'orders'], ['a', 'refunds'], ['ab', 'orders']] as const) {
        expect(await answersOf(tenant, name)).toEqual({ scope: tenant, name });
        expect(await answersOf(tenant, name)).toEqual({ scope: tenant, name });
      }
      expect(endpoint.runs).toBe(4);
      const anonymous = await endpoint.send({ key: 'k', tenant: '' });
      expect([anonymous.status, await codeOf(anonymous)]).toEqual([400, 'idempotency_scope_missing']);
    },
  },
  {
    name: '50: where keys count across endpoints, the other endpoint refuses the key',
    async run(stage) {
      const endpoint = endpointOf(stage, undefined, { perEndpoint: false });
      await endpoint.send({ key: 'k', name: 'orders', path: '/orders' });
      expect((await endpoint.send({ key: 'k', name: 'refunds', path: '/refunds' })).status).toBe(422);
    },
  },
  {
    name: '52: an answer too large to store is given whole once, and then named, never run again',
    async run(stage) {
      const endpoint = endpointOf(stage, () => new Response('x'.repeat(5_000), { status: 201 }), { maxAnswerBytes: 1_000 });
      expect((await (await endpoint.send({ key: 'k' })).text()).length).toBe(5_000);
      const again = await endpoint.send({ key: 'k' });
      expect(await again.json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 201, retryable: false, safe_new_key: false });
      expect([again.status, endpoint.runs]).toEqual([409, 1]);
    },
  },
  {
    name: '53: a live stream reaches its client live, and is never run again',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, () => {
        const body = new ReadableStream<Uint8Array>({
          async start(controller) {
            controller.enqueue(new TextEncoder().encode('data: 1\n\n'));
            await opened;
            controller.close();
          },
        });
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
      });
      const live = await endpoint.send({ key: 'k' });
      const reader = (live.body as ReadableStream<Uint8Array>).getReader();
      expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: 1\n\n');
      expect(await codeOf(await endpoint.send({ key: 'k' }))).toBe('idempotency_result_unavailable');
      open();
      expect((await reader.read()).done).toBe(true);
      expect(endpoint.runs).toBe(1);
    },
  },
  {
    name: '53: a stream that ends is stored like any answer; one that breaks is not, and never runs again',
    async run(stage) {
      const streamed = (end: (controller: ReadableStreamDefaultController<Uint8Array>) => void) => () =>
        new Response(new ReadableStream<Uint8Array>({ pull: controller => (controller.enqueue(new Uint8Array([1, 2])), end(controller)) }));
      const whole = endpointOf(stage, streamed(controller => controller.close()));
      await whole.send({ key: 'k1' });
      expect([...new Uint8Array(await (await whole.send({ key: 'k1' })).arrayBuffer())]).toEqual([1, 2]);
      const broken = endpointOf(stage, streamed(controller => controller.error(new Error('cut'))));
      await broken.send({ key: 'k2' });
      expect(await codeOf(await broken.send({ key: 'k2' }))).toBe('idempotency_result_unavailable');
      expect([whole.runs, broken.runs]).toEqual([1, 1]);
    },
  },
  {
    name: 'a request that is not the handler’s business leaves its key free for anybody',
    async run(stage) {
      const endpoint = endpointOf(stage);
      const { requestOf } = await import('./stage.js');
      expect(await endpoint.dedup.handle(requestOf({ key: 'k' }), () => undefined, { name: 'charge' })).toBeUndefined();
      expect((await endpoint.send({ key: 'k', body: '{"other":1}' })).headers.get('idempotency-status')).toBe('stored');
    },
  },
  {
    name: 'observers hear every outcome and cannot change it',
    async run(stage) {
      const heard: string[] = [];
      const endpoint = endpointOf(stage, undefined, {
        on: {
          executed: ({ status, record }) => void heard.push(`executed ${status} ${record}`),
          replayed: ({ status }) => void heard.push(`replayed ${status}`),
          refused: ({ refusal }) => {
            heard.push(`refused ${refusal.code}`);
            throw new Error('observer');
          },
          failed: error => heard.push(`failed ${(error as Error).message}`),
        },
      });
      await endpoint.send({ key: 'k' });
      await endpoint.send({ key: 'k' });
      expect((await endpoint.send({ key: 'k', body: '{}' })).status).toBe(422);
      expect(heard).toEqual(['executed 201 stored', 'replayed 201', 'refused idempotency_key_reused', 'failed observer']);
    },
  },
];
