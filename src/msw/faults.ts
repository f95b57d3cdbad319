import { HttpResponse } from 'msw';
import type { Exchange } from './exchange.js';

/** Where on its way a request is hit: before the endpoint has seen it, or after the endpoint has answered. */
export type FaultPhase = 'request' | 'response';

/** What each kind of fault needs to know. */
export interface FaultSettings {
  /** The request gets lost: nothing is executed, the client sees a network error. */
  'lose-request': object;
  /** The answer gets lost: executed and recorded, but the client sees a network error. */
  'lose-response': object;
  /** The connection breaks while the endpoint works, which it goes on doing: a quick retry meets a run in progress. */
  reset: object;
  /** Slowness, in ms. @default phase 'response': executed at once, answered late */
  delay: { readonly ms: number; readonly phase?: FaultPhase | undefined };
  /** Somebody between client and endpoint answers instead. @default phase 'request': nothing is executed */
  status: {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    readonly body?: string | undefined;
    readonly phase?: FaultPhase | undefined;
  };
  /**
   * The endpoint's process dies when the client gives up, and leaves its lease behind. Node only: browsers do not show
   * the client's abort to the mock.
   */
  'crash-on-abort': object;
}

export type FaultKind = keyof FaultSettings;

export interface FaultLimits {
  /** How many requests are hit. @default 1 */
  readonly times?: number | undefined;
  /** How probable it is that a request is hit, by the mock's seed. @default 1 */
  readonly chance?: number | undefined;
}

export type FaultOptions<Kind extends FaultKind> = FaultSettings[Kind] & FaultLimits;

/** A planted fault. Disposing takes it away. */
export interface Fault extends Disposable {
  readonly kind: FaultKind;
  /** Requests that it will still hit. */
  readonly remaining: number;
}

type Play<Kind extends FaultKind> = (exchange: Exchange, options: FaultSettings[Kind]) => Promise<Response | undefined>;

const afterAnswer = async (exchange: Exchange, response: () => Response): Promise<Response | undefined> => ((await exchange.answer()) ? response() : undefined);

const aborted = ({ signal }: Request): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** What each fault does. */
const PLAYS: { readonly [Kind in FaultKind]: Play<Kind> } = {
  'lose-request': async () => HttpResponse.error(),
  'lose-response': exchange => afterAnswer(exchange, () => HttpResponse.error()),
  async reset(exchange) {
    const answered = exchange.answer();
    await Promise.race([exchange.begun, answered]);
    // Nobody hears how it ends.
    answered.catch(() => {});
    return HttpResponse.error();
  },
  async delay(exchange, { ms, phase = 'response' }) {
    if (phase === 'request') await exchange.clock.sleep(ms);
    const response = await exchange.answer();
    if (phase === 'response') await exchange.clock.sleep(ms);
    return response;
  },
  async status(exchange, { status, headers = {}, body = '', phase = 'request' }) {
    const response = (): Response => new HttpResponse(body === '' ? null : body, { status, headers: { ...headers } });
    return phase === 'request' ? response() : afterAnswer(exchange, response);
  },
  async 'crash-on-abort'(exchange) {
    const answered = exchange.answer();
    const died = aborted(exchange.request).then(() => {
      exchange.crash();
      return HttpResponse.error();
    });
    return Promise.race([answered, died]);
  },
};

/** A fault with its settings, ready to be played. */
export interface Planted {
  readonly kind: FaultKind;
  play(exchange: Exchange): Promise<Response | undefined>;
}

export interface Faults {
  /** @throws TypeError for a name that no endpoint has, while others are there */
  plant<Kind extends FaultKind>(name: string, kind: Kind, options: FaultOptions<Kind>): Fault;
  /** The fault that hits this request, if any: the oldest that is left for the endpoint. */
  take(name: string): Planted | undefined;
  clear(): void;
}

/** A fault that can hit nothing would let a test pass that proves nothing. Before the first endpoint any name may come true. */
const assertEndpoint = (name: string, kind: FaultKind, names: ReadonlySet<string>): void => {
  if (names.size === 0 || names.has(name)) return;
  const known = Array.from(names, each => `"${each}"`).join(', ');
  throw new TypeError(`The fault "${kind}" is for "${name}", but no endpoint has that name. There are: ${known}. Correct the name, or call mock.idempotent(…, { name: '${name}' }) before mock.fault.`);
};

/**
 * @param random - gives fractions in [0, 1)
 * @param names - of the endpoints that there are, which may grow
 */
export const createFaults = (random: () => number, names: ReadonlySet<string>): Faults => {
  let planted: { readonly name: string; readonly chance: number; remaining: number; readonly fault: Planted }[] = [];
  return {
    plant(name, kind, options) {
      assertEndpoint(name, kind, names);
      const { times = 1, chance = 1 } = options;
      const entry = { name, chance, remaining: times, fault: { kind, play: (exchange: Exchange) => PLAYS[kind](exchange, options) } };
      planted.push(entry);
      return {
        kind,
        get remaining() {
          return entry.remaining;
        },
        [Symbol.dispose]() {
          entry.remaining = 0;
        },
      };
    },
    take(name) {
      planted = planted.filter(entry => entry.remaining > 0);
      const entry = planted.find(candidate => candidate.name === name && (candidate.chance >= 1 || random() < candidate.chance));
      if (!entry) return undefined;
      entry.remaining -= 1;
      return entry.fault;
    },
    clear() {
      for (const entry of planted) entry.remaining = 0;
      planted = [];
    },
  };
};
