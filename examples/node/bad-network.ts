import { setTimeout as sleep } from 'node:timers/promises';
import type { FetchHandler } from 'samekey/server/adapters/node';
import type { ApiEvent, Outcome } from './events.js';
import type { Order } from './orders.js';
import type { Fault } from './plan.js';

export interface BadNetworkOptions {
  readonly handler: FetchHandler;
  /** What happens to the nth request of an order. */
  readonly faultOf: (order: string, nth: number) => Fault;
  readonly tell: (event: ApiEvent) => void;
}

/** ms for which a half-sent body is on its way before the connection breaks. */
const BREAK_MS = 5;

/** The response as far as `share` of its body; there the connection breaks. 0: not even the status arrives. */
const broken = async (response: Response, share: number): Promise<Response> => {
  const bytes = new Uint8Array(await response.arrayBuffer());
  const kept = bytes.subarray(0, Math.ceil(bytes.length * share));
  const body = new ReadableStream<Uint8Array>({
    start: controller => (kept.length > 0 ? controller.enqueue(kept) : undefined),
    async pull(controller) {
      if (kept.length > 0) await sleep(BREAK_MS);
      controller.error(new Error('The network broke.'));
    },
  });
  return new Response(body, response);
};

/** What each fault makes of a request. */
const PLAYS: { readonly [F in Fault]: (answer: () => Promise<Response>) => Promise<Response> } = {
  none: answer => answer(),
  'lose-request': () => broken(new Response(), 0),
  unavailable: async () => new Response('The gateway is tired.', { status: 503 }),
  'lose-response': async answer => broken(await answer(), 0),
  'cut-body': async answer => broken(await answer(), 0.5),
};

const didOf = (response: Response | undefined): Outcome['did'] => {
  if (!response || response.status >= 500) return 'nothing';
  if (response.status === 409) return 'running';
  return response.headers.get('idempotent-replayed') === 'true' ? 'replayed' : 'charged';
};

/** Puts a network between the shop and the API that loses, cuts and refuses. */
export const badNetwork = ({ handler, faultOf, tell }: BadNetworkOptions): FetchHandler => {
  const seen = new Map<string, number>();
  let requests = 0;
  return async request => {
    const { id: order } = await request.clone().json() as Order;
    const nth = (seen.get(order) ?? 0) + 1;
    seen.set(order, nth);
    const id = ++requests;
    tell({ kind: 'arrived', request: id, order, key: request.headers.get('idempotency-key') ?? '(none)' });
    const fault = faultOf(order, nth);
    let answer: Response | undefined;
    const response = await PLAYS[fault](async () => (answer = await handler(request)));
    const outcome: Outcome = { did: didOf(answer), delivered: (fault === 'none' || fault === 'unavailable') && !request.signal.aborted };
    tell({ kind: 'answered', request: id, order, outcome });
    return response;
  };
};
