import { isPassthroughResponse, type HttpRequestResolverExtras, type PathParams, type ResponseResolverInfo } from 'msw';
import type { Clock } from '../clock.js';
import { createDedup, type DedupEvents, type DedupOptions, type Effects, type HandlerContext, type RefusalCode } from '../server/index.js';
import type { LedgerEvent } from './ledger.js';
import { mortalStore } from './mortal-store.js';
import type { OwnedResolver } from './resolver.js';

export type Info = ResponseResolverInfo<HttpRequestResolverExtras<PathParams>>;

/** One request on its way through the mock. */
export interface Exchange {
  readonly request: Request;
  readonly clock: Clock;
  /** Lets the endpoint do its work. Undefined: it has nothing to do with this request. */
  answer(): Promise<Response | undefined>;
  /** Resolves when the resolver begins. */
  readonly begun: Promise<void>;
  /** Kills the endpoint's process, as far as the store and the resolver's signal can tell. */
  crash(): void;
}

export interface ExchangeOptions {
  readonly info: Info;
  readonly resolver: OwnedResolver;
  readonly name: string;
  readonly effects: Effects | undefined;
  readonly settings: DedupOptions & { readonly clock: Clock };
  readonly log: (event: LedgerEvent) => Promise<void>;
}

const CONFLICTS: ReadonlySet<RefusalCode> = new Set([
  'idempotency_in_progress', 'idempotency_key_reused', 'idempotency_indeterminate', 'idempotency_key_expired',
  'idempotency_result_unavailable', 'idempotency_result_expired',
]);

const logging = (log: ExchangeOptions['log']): DedupEvents => ({
  executed: ({ status, record }) => log({ kind: 'answer', status, record }),
  replayed: ({ status }) => log({ kind: 'replay', status }),
  refused: ({ refusal: { code } }) => log({ kind: CONFLICTS.has(code) ? 'conflict' : 'refusal', code }),
});

/** Each exchange has an engine of its own, as if each request met another process: so one can die alone. */
export const createExchange = ({ info, resolver, name, effects, settings, log }: ExchangeOptions): Exchange => {
  const death = new AbortController();
  const dedup = createDedup({ ...settings, store: mortalStore(settings.store, death.signal), on: logging(log) });
  let begin = (): void => {};
  const begun = new Promise<void>(resolve => (begin = resolve));
  let passed: Response | undefined;

  const handler = async (_request: Request, context: HandlerContext): Promise<Response | undefined> => {
    if (context.scope !== undefined) await log({ kind: 'claim', scope: context.scope, attempt: context.attempt });
    await log({ kind: 'execution' });
    begin();
    const response = await resolver.run(info, { ...context, signal: AbortSignal.any([context.signal, death.signal]) });
    if (response && !isPassthroughResponse(response)) return response;
    await log({ kind: 'fell-through' });
    passed = response;
    return undefined;
  };

  return {
    request: info.request,
    clock: settings.clock,
    begun,
    async answer() {
      // A clone, because a resolver that falls through leaves the request to the next one.
      return (await dedup.handle(info.request.clone(), handler, { name, effects })) ?? passed;
    },
    crash: () => death.abort(new DOMException('The mocked process died.', 'AbortError')),
  };
};
