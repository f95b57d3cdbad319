import { withCors, type DedupOptions, type DedupStore } from '../../../src/server/index.js';
import { PAGE_ORIGIN } from '../../../src/testing/conformance.js';
import type { Served, StoreStage } from '../../server/support/targets.js';

export type Handle = (request: Request) => Promise<Response>;

/** Our own server with one fault in it. */
export interface Mutant {
  /** The fault, in plain words. */
  readonly name: string;
  /** The facts that name it: these fail, and no others. */
  readonly fails: readonly string[];
  /** The fault is in what is configured. */
  readonly configure?: (options: DedupOptions, stage: StoreStage) => DedupOptions;
  /** The fault is in the records. */
  readonly store?: (stage: StoreStage) => DedupStore;
  /** The fault is between the wire and the engine, or between the engine and the handler. */
  readonly handle?: (served: Served, stage: StoreStage) => Handle;
}

/** What is known per key in a faulty layer of its own. */
export const keyOf = (request: Request): string => request.headers.get('idempotency-key') ?? '';

export const isReplay = ({ headers }: Response): boolean => headers.get('idempotent-replayed') === 'true';

export const codeOf = async (response: Response): Promise<string | undefined> => {
  if (!response.headers.get('content-type')?.includes('problem+json')) return undefined;
  return ((await response.clone().json()) as { code?: string }).code;
};

/** The same request with other headers. */
export const withHeader = (request: Request, name: string, value: string): Request => {
  const headers = new Headers(request.headers);
  headers.set(name, value);
  return new Request(request, { headers });
};

/** A server as ours, but for the handler behind it. */
export const behind = ({ dedup, nameOf, guard }: Served, handler: Parameters<Served['dedup']['handle']>[1]): Handle => {
  const answer = withCors(async request => (await dedup.handle(request, handler, { name: nameOf(new URL(request.url).pathname) })) ?? Response.error(), { origins: [PAGE_ORIGIN] });
  return async request => guard(request) ?? answer(request);
};
