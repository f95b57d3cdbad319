import { expect } from 'vitest';
import { createDedup, type DedupStore } from '../../src/server/index.js';

/** Gets a request to a handler and its answer back: over a socket, or as a call. */
export type Door = (request: Request) => Promise<Response>;

/** What the checks stand on: two stores on the same rows, as two servers of one service have. */
export interface Stage {
  readonly stores: readonly [DedupStore, DedupStore];
  /** Lets ms pass by the clock of the stores: what expires, expires by it. */
  readonly pass: (ms: number) => Promise<void>;
  /** ms that the clock of the stores may go on by itself during a check. @default 0 */
  readonly drift?: number;
  /** Puts a handler behind a door. */
  readonly door: (handler: (request: Request) => Promise<Response>) => Promise<Door>;
}

export interface Check {
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

export const DAY_MS = 86_400_000;

interface Api {
  /** One per server. */
  readonly doors: readonly Door[];
  /** What was executed, in order. */
  readonly effects: readonly unknown[];
}

export const ORIGIN = 'https://api.test';

const requestOf = (key: string, body: object): Request =>
  new Request(`${ORIGIN}/charges`, { method: 'POST', headers: { 'idempotency-key': key, 'content-type': 'application/json' }, body: JSON.stringify(body) });

/** A payment API of two servers, whose effects are counted and whose work takes as long as `work` does. */
export const openApi = async ({ stores, door }: Stage, work: () => Promise<void> = async () => {}): Promise<Api> => {
  const effects: unknown[] = [];
  const charge = async (request: Request): Promise<Response> => {
    const order: unknown = await request.json();
    await work();
    effects.push(order);
    return Response.json({ id: `ch_${effects.length}`, order }, { status: 201, headers: { location: `/charges/${effects.length}` } });
  };
  const serve = (store: DedupStore): Promise<Door> => {
    const dedup = createDedup({ store, scope: () => 'acct_1', retention: DAY_MS });
    return door(request => dedup.handle(request, charge, { name: 'charge' }));
  };
  return { doors: await Promise.all(stores.map(serve)), effects };
};

const bytesOf = async (response: Response): Promise<readonly number[]> => [...new Uint8Array(await response.arrayBuffer())];

const statuses = (responses: readonly Response[]): Record<number, number> => {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

/** More than the connections that one client opens, fewer than a busy machine minds. */
const PARALLEL = 30;

const atOnce = ({ doors }: Api, key: string): readonly Promise<Response>[] =>
  Array.from({ length: PARALLEL }, (_, at) => (doors[at % doors.length] as Door)(requestOf(key, { order: 1 })));

export const engineChecks: readonly Check[] = [
  {
    name: 'check 1: the same request with the same key twice has one effect, and the second answer is the first to the byte',
    async run(stage) {
      const { doors: [one, other], effects } = await openApi(stage) as Api & { doors: [Door, Door] };
      const first = await one(requestOf('k', { order: 1 }));
      const second = await other(requestOf('k', { order: 1 }));
      expect([first.status, second.status]).toEqual([201, 201]);
      expect(second.headers.get('location')).toBe(first.headers.get('location'));
      expect(await bytesOf(second)).toEqual(await bytesOf(first));
      expect(effects).toEqual([{ order: 1 }]);
    },
  },
  {
    name: 'check 2: of parallel requests with one key exactly one executes, while the others get 409; afterwards all get its answer',
    async run(stage) {
      let finish = (): void => {};
      const finished = new Promise<void>(resolve => (finish = resolve));
      const api = await openApi(stage, () => finished);
      const calls = atOnce(api, 'k');
      let answered = 0;
      // The one that executes ends only when every other one has its answer.
      for (const call of calls) void call.then(() => (answered += 1) === PARALLEL - 1 && finish());
      expect(statuses(await Promise.all(calls))).toEqual({ 201: 1, 409: PARALLEL - 1 });
      expect(statuses(await Promise.all(atOnce(api, 'k')))).toEqual({ 201: PARALLEL });
      expect(api.effects).toEqual([{ order: 1 }]);
    },
  },
  {
    name: 'check 2: parallel requests with one key race freely, and there is one effect',
    async run(stage) {
      const api = await openApi(stage);
      for (let round = 1; round <= 10; round += 1) {
        const counts = statuses(await Promise.all(atOnce(api, `k${round}`)));
        expect((counts[201] ?? 0) + (counts[409] ?? 0)).toBe(PARALLEL);
        expect(counts[201]).toBeGreaterThanOrEqual(1);
        expect(api.effects).toHaveLength(round);
      }
    },
  },
  {
    name: 'check 3: the same key with another body is refused with 422, and nothing runs',
    async run(stage) {
      const { doors, effects } = await openApi(stage);
      const [one, other] = doors as [Door, Door];
      await one(requestOf('k', { order: 1 }));
      const refused = await other(requestOf('k', { order: 2 }));
      expect(refused.status).toBe(422);
      expect(await refused.json()).toMatchObject({ code: 'idempotency_key_reused' });
      expect(effects).toEqual([{ order: 1 }]);
    },
  },
  {
    name: 'check 8: past its retention a key is a fresh request, and before it is not',
    async run(stage) {
      const { doors, effects } = await openApi(stage);
      const [one] = doors as [Door];
      const ask = async (): Promise<number> => (await one(requestOf('k', { order: 1 }))).status;
      const { pass, drift = 0 } = stage;
      await ask();
      await pass(DAY_MS - 1 - drift);
      expect([await ask(), effects.length]).toEqual([201, 1]);
      await pass(2 + drift);
      expect([await ask(), effects.length]).toEqual([201, 2]);
    },
  },
  {
    name: 'check 8: expired rows are purged, so the table holds one retention of keys and no more',
    async run(stage) {
      const { doors } = await openApi(stage);
      const [one] = doors as [Door];
      const [store] = stage.stores;
      for (let day = 0; day < 4; day += 1) {
        const keys = Array.from({ length: 25 }, (_, at) => `${day}:${at}`);
        await Promise.all(keys.map(key => one(requestOf(key, { order: key }))));
        // Whatever is older than a day goes, whatever is younger stays.
        expect(await store.purge()).toMatchObject({ deleted: day === 0 ? 0 : 25, more: false });
        await stage.pass(DAY_MS + 1);
      }
      expect(await store.purge()).toMatchObject({ deleted: 25, more: false });
      expect(await store.purge()).toMatchObject({ deleted: 0, more: false });
    },
  },
];
