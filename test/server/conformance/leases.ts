import { expect } from 'vitest';
import { LeaseLostError } from '../../../src/server/index.js';
import { mortalStore } from '../../../src/msw/mortal-store.js';
import { always, codeOf, endpointOf, faulty, gate, hasty, isReplay, LEASE, type Conformance, type Endpoint, type Stage } from './stage.js';

/** A request whose worker dies (as far as the store can tell) as soon as its handler has done `before`. */
const die = async (stage: Stage, options: Parameters<typeof endpointOf>[2], before: (context: { effectStarted(): Promise<void> }) => Promise<void> = async () => {}): Promise<void> => {
  const death = new AbortController();
  const reached = gate();
  const doomed = endpointOf(
    { ...stage, store: mortalStore(stage.store, death.signal) },
    async (_request, context) => {
      await before(context);
      death.abort();
      reached.open();
      return new Response('never heard');
    },
    options,
  );
  void doomed.send({ key: 'k' });
  await reached.opened;
};

/** Two workers on one store: the first is cut off from it (no renewals) but goes on working until told to end. */
const slowWorker = async (stage: Stage, ending: () => Response): Promise<{ end: () => Promise<Response>; signal: AbortSignal; rival: Endpoint }> => {
  const { opened, open } = gate();
  let signal!: AbortSignal;
  const store = { ...stage.store, renew: async () => Promise.reject(new Error('cut off')) };
  const slow = endpointOf({ ...stage, store }, async (_request, context) => {
    signal = context.signal;
    await opened;
    return ending();
  });
  const answered = slow.send({ key: 'k' });
  await expect.poll(() => slow.runs).toBe(1);
  await stage.clock.advance(LEASE + 1);
  const rival = endpointOf(stage, () => new Response('rival'), { effects: 'idempotent' });
  return { end: () => (open(), answered), signal, rival };
};

export const leases: readonly Conformance[] = [
  {
    name: '34: a worker that died before its effect is followed by exactly one run, after its lease',
    async run(stage) {
      for (const effects of ['marked', 'idempotent'] as const) {
        const own = { effects };
        const name = { name: effects };
        const endpoint = endpointOf(stage, undefined, own);
        const death = new AbortController();
        const doomed = endpointOf({ ...stage, store: mortalStore(stage.store, death.signal) }, () => (death.abort(), new Response()), own);
        void doomed.send({ key: 'k', ...name });
        await expect.poll(() => doomed.runs).toBe(1);
        expect(await codeOf(await endpoint.send({ key: 'k', ...name }))).toBe('idempotency_in_progress');
        await stage.clock.advance(LEASE + 1);
        const responses = await Promise.all(Array.from({ length: 5 }, () => endpoint.send({ key: 'k', ...name })));
        expect(endpoint.runs).toBe(1);
        expect(responses.some(({ status }) => status === 201)).toBe(true);
      }
    },
  },
  {
    name: '35: a worker that died after an external effect leaves doubt and no second run',
    async run(stage) {
      await die(stage, { effects: 'marked' }, context => context.effectStarted());
      await stage.clock.advance(LEASE + 1);
      const endpoint = endpointOf(stage, undefined, { effects: 'marked' });
      for (let again = 0; again < 2; again += 1) {
        const response = await endpoint.send({ key: 'k' });
        expect(response.status).toBe(409);
        expect(await response.json()).toMatchObject({ code: 'idempotency_indeterminate', retryable: false, safe_new_key: false });
      }
      expect(endpoint.runs).toBe(0);
    },
  },
  {
    name: '35: with undeclared effects the death of a worker always leaves doubt, which an operator ends',
    async run(stage) {
      await die(stage, {});
      await stage.clock.advance(LEASE + 1);
      const endpoint = endpointOf(stage);
      expect(await codeOf(await endpoint.send({ key: 'k' }))).toBe('idempotency_indeterminate');
      const owner = { scope: 'acme', name: 'charge', key: 'k' };
      expect(await endpoint.dedup.resolve(owner, { answer: Response.json({ id: 7 }, { status: 201 }) })).toBe(true);
      const replay = await endpoint.send({ key: 'k' });
      expect([replay.status, await replay.json(), endpoint.runs]).toEqual([201, { id: 7 }, 0]);
      expect(await endpoint.dedup.resolve(owner, 'not-applied')).toBe(false);
    },
  },
  {
    name: '35: doubt resolved as applied, without an answer, is told as such',
    async run(stage) {
      await die(stage, {});
      await stage.clock.advance(LEASE + 1);
      const endpoint = endpointOf(stage);
      await endpoint.dedup.resolve({ scope: 'acme', name: 'charge', key: 'k' }, 'applied');
      const response = await endpoint.send({ key: 'k' });
      expect(await response.json()).toMatchObject({ code: 'idempotency_result_unavailable', original_status: 200, safe_new_key: false });
      expect(endpoint.runs).toBe(0);
    },
  },
  {
    name: '35: a server that can find out is asked before it refuses',
    async run(stage) {
      await die(stage, {});
      await stage.clock.advance(LEASE + 1);
      const asked: string[] = [];
      const endpoint = endpointOf(stage, undefined, {
        recover: async ({ key }) => {
          asked.push(key);
          return { to: 'retryable', keyRetention: 1_000 };
        },
      });
      expect([(await endpoint.send({ key: 'k' })).status, endpoint.runs, asked]).toEqual([201, 1, ['k']]);
    },
  },
  {
    name: '36: a slow worker that lost its key changes nothing, and its client gets the answer of the record',
    async run(stage) {
      const { end, rival } = await slowWorker(stage, () => new Response('slow'));
      expect(await (await rival.send({ key: 'k' })).text()).toBe('rival');
      const late = await end();
      expect([await late.text(), isReplay(late)]).toEqual(['rival', true]);
      expect(await (await rival.send({ key: 'k' })).text()).toBe('rival');
      expect(rival.runs).toBe(1);
    },
  },
  {
    name: '37: a slow worker that fails after it lost its key does not free it',
    async run(stage) {
      const { end, rival } = await slowWorker(stage, () => {
        throw new Error('too late');
      });
      await rival.send({ key: 'k' });
      expect(await (await end()).text()).toBe('rival');
      expect([isReplay(await rival.send({ key: 'k' })), rival.runs]).toEqual([true, 1]);
    },
  },
  {
    name: '39: a worker that outlived its lease without a rival is stored',
    async run(stage) {
      const { end, rival } = await slowWorker(stage, () => new Response('slow'));
      expect((await end()).headers.get('idempotency-status')).toBe('stored');
      expect([await (await rival.send({ key: 'k' })).text(), rival.runs]).toEqual(['slow', 0]);
    },
  },
  {
    name: '40: renewals keep a key through a run of three leases',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async () => opened.then(() => new Response('done')), { effects: 'idempotent' });
      const first = endpoint.send({ key: 'k' });
      await expect.poll(() => endpoint.runs).toBe(1);
      for (let third = 0; third < 9; third += 1) {
        await expect.poll(() => stage.clock.sleeping).toBe(1);
        await stage.clock.advance(LEASE / 3);
      }
      expect(await codeOf(await endpoint.send({ key: 'k' }))).toBe('idempotency_in_progress');
      open();
      expect([(await first).status, endpoint.runs]).toEqual([200, 1]);
      await expect.poll(() => stage.clock.sleeping).toBe(0);
    },
  },
  {
    name: '40: a worker that lost its key is told by its signal, and may begin no effect',
    async run(stage) {
      const { opened, open } = gate();
      let signal: AbortSignal | undefined;
      let refused: unknown;
      const slow = endpointOf(stage, async (_request, context) => {
        signal = context.signal;
        await opened;
        refused = await context.effectStarted().catch((error: unknown) => error);
        return new Response('slow');
      });
      const answered = slow.send({ key: 'k' });
      await expect.poll(() => slow.runs).toBe(1);
      // Straight past the lease on the store's clock, before a renewal can be made: a process that stood still.
      const row = await stage.store.get({ scope: '4:acme6:charge', key: 'k' });
      expect(row?.state).toBe('in_progress');
      await stage.store.settle({ scope: '4:acme6:charge', key: 'k', owner: row?.owner ?? '', fence: row?.fence ?? 0 }, { to: 'indeterminate', reason: 'test' });
      await expect.poll(() => stage.clock.sleeping).toBe(1);
      await stage.clock.advance(LEASE / 3);
      await expect.poll(() => signal?.aborted).toBe(true);
      expect(signal?.reason).toBeInstanceOf(LeaseLostError);
      open();
      await answered;
      expect(refused).toBeInstanceOf(LeaseLostError);
    },
  },
  {
    name: '41: a claim whose acknowledgement got lost goes on as the owner',
    async run(stage) {
      const endpoint = endpointOf({ ...stage, store: faulty(stage.store, { claim: ['lose'] }) }, undefined, { clock: hasty(stage.clock) });
      expect([(await endpoint.send({ key: 'k' })).status, endpoint.runs]).toEqual([201, 1]);
    },
  },
  {
    name: '42: an end that could not be written at first is written',
    async run(stage) {
      for (const fault of ['refuse', 'lose'] as const) {
        const endpoint = endpointOf({ ...stage, store: faulty(stage.store, { settle: [fault] }) }, undefined, { clock: hasty(stage.clock) });
        expect((await endpoint.send({ key: fault })).headers.get('idempotency-status')).toBe('stored');
        expect([isReplay(await endpoint.send({ key: fault })), endpoint.runs]).toEqual([true, 1]);
      }
    },
  },
  {
    name: '42: an end that could never be written is answered as unrecorded, and never runs again',
    async run(stage) {
      const broken = endpointOf({ ...stage, store: faulty(stage.store, { settle: always('refuse') }) }, undefined, { clock: hasty(stage.clock) });
      const response = await broken.send({ key: 'k' });
      expect([response.status, response.headers.get('idempotency-status')]).toEqual([201, 'unrecorded']);
      await stage.clock.advance(LEASE + 1);
      const endpoint = endpointOf(stage);
      expect(await codeOf(await endpoint.send({ key: 'k' }))).toBe('idempotency_indeterminate');
      expect(endpoint.runs).toBe(0);
    },
  },
  {
    name: '43: a handler is not tied to its client: what it answers is stored',
    async run(stage) {
      const { opened, open } = gate();
      const client = new AbortController();
      let aborted: boolean | undefined;
      const endpoint = endpointOf(stage);
      const handler = async (request: Request): Promise<Response> => {
        await opened;
        aborted = request.signal.aborted;
        return new Response('done');
      };
      const request = new Request('https://shop.example/charges', {
        method: 'POST', body: '{}', signal: client.signal, headers: { 'idempotency-key': 'k', 'x-tenant': 'acme', 'content-type': 'application/json' },
      });
      const first = endpoint.dedup.handle(request, handler, { name: 'charge' });
      await expect.poll(async () => (await stage.store.get({ scope: '4:acme6:charge', key: 'k' }))?.state).toBe('in_progress');
      client.abort();
      expect((await endpoint.send({ key: 'k', body: '{}' })).status).toBe(409);
      open();
      await first;
      expect(aborted).toBe(false);
      expect([isReplay(await endpoint.send({ key: 'k', body: '{}' })), endpoint.runs]).toEqual([true, 0]);
    },
  },
  {
    name: '44: a server that goes down can wait for its runs, and leaves no key held',
    async run(stage) {
      const { opened, open } = gate();
      const endpoint = endpointOf(stage, async () => opened.then(() => new Response('done')));
      const first = endpoint.send({ key: 'k' });
      await expect.poll(() => endpoint.runs).toBe(1);
      let idle = false;
      const down = endpoint.dedup.idle().then(() => (idle = true));
      await stage.clock.advance(0);
      expect(idle).toBe(false);
      open();
      await Promise.all([first, down]);
      expect((await stage.store.get({ scope: '4:acme6:charge', key: 'k' }))?.state).toBe('completed');
    },
  },
  {
    name: '49: a store that cannot be reached lets nothing run',
    async run(stage) {
      const endpoint = endpointOf({ ...stage, store: faulty(stage.store, { claim: always('refuse') }) }, undefined, { clock: hasty(stage.clock) });
      const response = await endpoint.send({ key: 'k' });
      expect([response.status, response.headers.get('retry-after'), await codeOf(response), endpoint.runs]).toEqual([503, '1', 'idempotency_store_unavailable', 0]);
    },
  },
  {
    name: '49: an endpoint that would rather run twice than not at all says that it was not protected',
    async run(stage) {
      const store = faulty(stage.store, { claim: always('refuse') });
      const endpoint = endpointOf({ ...stage, store }, async request => new Response(await request.text()), { clock: hasty(stage.clock), failOpen: true });
      const response = await endpoint.send({ key: 'k' });
      expect([response.status, response.headers.get('idempotency-status'), await response.text()]).toEqual([200, 'unrecorded', '{"amount":4200}']);
    },
  },
  {
    name: '56: clocks of servers that are minutes off change no lease and no expiry',
    async run(stage) {
      for (const skew of [-300_000, 300_000]) {
        const { opened, open } = gate();
        const clock = { ...stage.clock, now: () => stage.clock.now() + skew };
        const endpoint = endpointOf(stage, async () => opened.then(() => new Response('done')), { clock });
        const first = endpoint.send({ key: `k${skew}` });
        await expect.poll(() => endpoint.runs).toBe(1);
        const conflict = await endpoint.send({ key: `k${skew}` });
        expect([conflict.status, Number(conflict.headers.get('retry-after')) <= LEASE / 1000]).toEqual([409, true]);
        open();
        await first;
        await stage.clock.advance(86_399_000 - (stage.drift ?? 0));
        expect(isReplay(await endpoint.send({ key: `k${skew}` }))).toBe(true);
      }
    },
  },
];
