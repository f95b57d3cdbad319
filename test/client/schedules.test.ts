import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { createClient } from '../../src/client.js';
import { isSamekeyError } from '../../src/errors.js';
import { memoryBacking, memoryKeyStore } from '../../src/keystore/memory.js';
import { createDedup } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { networkError } from '../support/transport.js';
import { settleDown, virtualClock, type VirtualClock } from '../support/virtual-clock.js';

/** What goes wrong with one request on its way to a real engine and back. */
type Fault = 'none' | 'lose-request' | 'lose-response' | 'cut-body' | 'hang' | '503 before' | '429 before' | '500 from the handler' | '401 before' | 'html 502 after';

/** What happens to the pages that drive the operation. */
type Step = 'call' | 'call elsewhere' | 'resume' | 'crash' | 'abort' | 'time';

const FAULTS: readonly Fault[] = ['none', 'lose-request', 'lose-response', 'cut-body', 'hang', '503 before', '429 before', '500 from the handler', '401 before', 'html 502 after'];
const STEPS: readonly Step[] = ['call', 'call elsewhere', 'resume', 'crash', 'abort', 'time'];

const cut = (response: Response): Response =>
  new Response(new ReadableStream({ start: controller => (controller.enqueue(new Uint8Array([123])), controller.error(new Error('cut'))) }), { status: response.status, headers: response.headers });

/** A payment server that is right, behind a network that is not. */
const createWorld = (clock: VirtualClock, faults: Fault[]) => {
  const effects: string[] = [];
  const keys = new Set<string | null>();
  const bytes = new Set<string>();
  let failing = false;
  const dedup = createDedup({ store: memoryDedupStore({ clock }), scope: () => 'acct', clock, effects: 'idempotent', on: { failed: () => undefined } });
  const execute = (request: Request): Promise<Response> =>
    dedup.handle(request, async () => {
      if (failing) throw new Error('the handler failed before its effect');
      effects.push(await Promise.resolve('charge'));
      return Response.json({ id: effects.length }, { status: 201 });
    }, { name: 'charge' });

  const fetch = async (request: Request): Promise<Response> => {
    const fault = faults.shift() ?? 'none';
    keys.add(request.headers.get('idempotency-key'));
    bytes.add(await request.clone().text());
    if (fault === 'lose-request') throw networkError();
    if (fault === '503 before' || fault === '429 before' || fault === '401 before') return new Response(null, { status: Number(fault.slice(0, 3)) });
    failing = fault === '500 from the handler';
    const response = await execute(request.clone());
    failing = false;
    if (fault === 'lose-response') throw networkError();
    if (fault === 'hang') return new Promise((_, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason as Error)));
    if (fault === 'html 502 after') return new Response('<html>', { status: 502, headers: { 'content-type': 'text/html' } });
    return fault === 'cut-body' ? cut(response) : response;
  };
  return { fetch, effects, keys, bytes };
};

type World = ReturnType<typeof createWorld>;

const play = async (steps: readonly Step[], faults: readonly Fault[]): Promise<{ world: World; failures: string[]; answer: unknown }> => {
  const clock = virtualClock({ auto: false });
  const pending = [...faults];
  const world = createWorld(clock, pending);
  const backing = memoryBacking();
  const open = () => createClient({ prefix: 'https://api.test', keystore: memoryKeyStore({ backing }), keyStrategy: 'derived', scope: 'acct', random: () => 0.5, clock, fetch: world.fetch, retry: 2, totalTimeout: 30_000 });
  let pages = [open(), open()];
  let controller = new AbortController();
  const failures: string[] = [];
  const call = (page: number): void => {
    const { signal } = controller;
    pages[page]?.post('charges', { operation: 'order:1', json: { amount: 1 }, signal }).json().catch((error: unknown) => {
      if (!isSamekeyError(error) && (error as Error).name === 'HTTPError') failures.push(String(error));
    });
  };
  const acts: Record<Step, () => void> = {
    call: () => call(0),
    'call elsewhere': () => call(1),
    resume: () => void pages[1]?.operations.resume().catch(() => undefined),
    // The pages are gone with all that they waited for; their leases are free.
    crash: () => {
      backing.owners.clear();
      pages = [open(), open()];
    },
    abort: () => {
      controller.abort();
      controller = new AbortController();
    },
    time: () => undefined,
  };
  for (const step of steps) {
    acts[step]();
    await (step === 'time' ? clock.advance(7_000) : settleDown(6));
  }
  // In the end the network is well, and somebody asks for the answer.
  await clock.advance(120_000);
  pending.length = 0;
  backing.owners.clear();
  const last = open();
  const answer = last.post('charges', { operation: 'order:1', json: { amount: 1 } }).json();
  answer.catch(() => undefined);
  await clock.advance(120_000);
  return { world, failures, answer: await answer };
};

it('whatever is lost, killed, aborted or repeated: one effect, one key, one body, and whoever asks last learns the true answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 8 }),
      fc.array(fc.constantFrom(...FAULTS), { maxLength: 6 }),
      async (steps, faults) => {
        const { world, failures, answer } = await play(steps, faults);
        expect(world.effects).toHaveLength(1);
        expect(world.keys.size).toBe(1);
        expect(world.bytes.size).toBe(1);
        expect(answer).toEqual({ id: 1 });
        // A refused sign-in before anything else is the one failure that may be told; it had no effect then.
        expect(failures.filter(failure => !failure.includes('401'))).toEqual([]);
      },
    ),
    { numRuns: Number(process.env['SAMEKEY_SCHEDULES'] ?? 200) },
  );
}, 120_000);
