import { expect } from 'vitest';
import type { Clock } from '../../../src/clock.js';
import { createDedup, type Dedup, type DedupOptions, type DedupStore, type Effects, type HandlerContext } from '../../../src/server/index.js';
import type { ManualClock } from '../../support/manual-clock.js';

/** What a store configuration gives to each case: an empty store on a clock that the test moves. */
export interface Stage {
  readonly store: DedupStore;
  readonly clock: ManualClock;
  /** ms that the store's clock may move on by itself during a case. @default 0: it is `clock` */
  readonly drift?: number;
  dispose?(): Promise<void>;
}

export const LEASE = 30_000;
export const DAY = 86_400_000;

export interface Sent {
  readonly key?: string;
  readonly body?: BodyInit | null;
  readonly method?: string;
  readonly path?: string;
  readonly type?: string;
  readonly tenant?: string;
  readonly name?: string;
  readonly headers?: Record<string, string>;
}

export interface Endpoint {
  readonly dedup: Dedup;
  /** How often the handler was entered. */
  readonly runs: number;
  send(sent?: Sent): Promise<Response>;
}

type Work = (request: Request, context: HandlerContext, run: number) => Response | Promise<Response>;

const created: Work = (_request, _context, run) => Response.json({ id: run }, { status: 201, headers: { location: `/charges/${run}` } });

const CHARGE = '{"amount":4200}';

export const requestOf = ({ key, body = CHARGE, method = 'POST', path = '/charges', type = 'application/json', tenant = 'acme', headers = {} }: Sent): Request =>
  new Request(`https://shop.example${path}`, {
    method,
    headers: {
      'x-tenant': tenant,
      ...(key !== undefined && { 'idempotency-key': key }),
      ...(body instanceof FormData || body === null ? {} : { 'content-type': type }),
      ...headers,
    },
    ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
  });

/** An endpoint with a handler that counts. */
export const endpointOf = (stage: Stage, work: Work = created, options: Partial<DedupOptions> & { readonly effects?: Effects } = {}): Endpoint => {
  let runs = 0;
  const dedup = createDedup({
    store: stage.store,
    clock: stage.clock,
    scope: request => request.headers.get('x-tenant') ?? undefined,
    lease: LEASE,
    retention: DAY,
    on: { failed: () => {} },
    ...options,
  });
  return {
    dedup,
    get runs() {
      return runs;
    },
    send: (sent = {}) =>
      dedup.handle(
        requestOf(sent),
        (request, context) => {
          runs += 1;
          return work(request, context, runs);
        },
        { name: sent.name ?? 'charge' },
      ),
  };
};

export const codeOf = async (response: Response): Promise<string> => ((await response.json()) as { code: string }).code;

export const isReplay = (response: Response): boolean => response.headers.get('idempotent-replayed') === 'true';

/** A promise and what settles it. */
export const gate = <T = void>(): { readonly opened: Promise<T>; readonly open: (value: T) => void } => {
  let open!: (value: T) => void;
  const opened = new Promise<T>(resolve => (open = resolve));
  return { opened, open };
};

/** Moves the clock, a little at a time, until `promise` settles. */
export const passUntil = async <T>(clock: ManualClock, promise: Promise<T>): Promise<T> => {
  let settled = false;
  const settle = (): void => void (settled = true);
  promise.then(settle, settle);
  const step = async (): Promise<boolean> => {
    await clock.advance(100);
    return settled;
  };
  await expect.poll(step, { interval: 5 }).toBe(true);
  return promise;
};

/** A clock for which foreground waits take no time; renewals still follow the given one. */
export const hasty = (clock: Clock): Clock => ({
  ...clock,
  sleep: (ms, signal, background) => (background ? clock.sleep(ms, signal, background) : Promise.resolve()),
});
