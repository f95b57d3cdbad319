import { expectTypeOf } from 'expect-type';
import { delay, http, HttpResponse, passthrough, type HttpHandler } from 'msw';
import { createIdempotencyMock, type Fault, type IdempotencyMock, type LedgerEntry } from '../../src/msw/index.js';
import { createDedup } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';

interface ChargeRequest {
  amount: number;
}

interface ChargeResponse {
  id: string;
}

const mock = createIdempotencyMock();
expectTypeOf(mock).toEqualTypeOf<IdempotencyMock>();
expectTypeOf(mock.ledger).toEqualTypeOf<readonly LedgerEntry[]>();
expectTypeOf(mock.executions('charge')).toEqualTypeOf<number>();

// What a resolver may be: a function, an async function, a generator of either kind.
expectTypeOf(http.post('/charges', mock.idempotent(() => HttpResponse.json({ id: '1' }, { status: 201 }), { name: 'charge' }))).toEqualTypeOf<HttpHandler>();
http.post('/charges', mock.idempotent(async () => { await delay(1); return HttpResponse.json({ id: '1' }); }, { name: 'charge' }));
http.post('/charges', mock.idempotent(function* () { yield HttpResponse.error(); return HttpResponse.json({ id: '1' }); }, { name: 'charge' }));
http.post('/charges', mock.idempotent(async function* () { yield HttpResponse.error(); return HttpResponse.json({ id: '1' }); }, { name: 'charge' }));
http.post('/charges', mock.idempotent(() => passthrough(), { name: 'charge' }));
http.post('/charges', mock.idempotent(() => undefined, { name: 'charge' }));

// MSW's generics, in its own order.
http.post<{ id: string }, ChargeRequest, ChargeResponse>(
  '/orders/:id/charges',
  mock.idempotent<{ id: string }, ChargeRequest, ChargeResponse>(
    async ({ request, params, idempotency }) => {
      expectTypeOf(params.id).toEqualTypeOf<string>();
      expectTypeOf(await request.json()).toEqualTypeOf<ChargeRequest>();
      expectTypeOf(idempotency.attempt).toEqualTypeOf<number>();
      expectTypeOf(idempotency.signal).toEqualTypeOf<AbortSignal>();
      return HttpResponse.json({ id: params.id });
    },
    { name: 'charge' },
  ),
);

mock.idempotent<{ id: string }, ChargeRequest, ChargeResponse>(
  // @ts-expect-error the body is not a ChargeResponse
  () => HttpResponse.json({ id: 1 }),
  { name: 'charge' },
);

// @ts-expect-error an endpoint needs a name, because a resolver cannot see its route
mock.idempotent(() => HttpResponse.json({}));

expectTypeOf(mock.fault('charge', 'lose-response')).toEqualTypeOf<Fault>();
mock.fault('charge', 'delay', { ms: 10, phase: 'request', times: 2, chance: 0.5 });
mock.fault('charge', 'status', { status: 503 });
// @ts-expect-error a delay needs its length
mock.fault('charge', 'delay');
// @ts-expect-error there is no such fault
mock.fault('charge', 'explode');

// @ts-expect-error a server without a scope would let strangers share keys (C84)
createDedup({ store: memoryDedupStore() });

const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'acme' });
expectTypeOf(dedup.handle(new Request('x:'), () => new Response(), { name: 'charge' })).toEqualTypeOf<Promise<Response>>();
expectTypeOf(dedup.handle(new Request('x:'), () => undefined, { name: 'charge' })).toEqualTypeOf<Promise<Response | undefined>>();
