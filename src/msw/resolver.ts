import type { DefaultBodyType, HttpRequestResolverExtras, PathParams, ResponseResolver, ResponseResolverInfo } from 'msw';
import type { HandlerContext } from '../server/index.js';

/** What a resolver gets beside MSW's own: what the engine knows of the run. */
export interface IdempotencyInfo extends Record<string, unknown> {
  readonly idempotency: HandlerContext;
}

/** A resolver of MSW (function, async function or generator) that may look at its run. */
export type IdempotentResolver<Params extends PathParams<keyof Params>, RequestBody extends DefaultBodyType, ResponseBody extends DefaultBodyType> = ResponseResolver<
  HttpRequestResolverExtras<Params> & IdempotencyInfo,
  RequestBody,
  ResponseBody
>;

type AnyInfo = ResponseResolverInfo<HttpRequestResolverExtras<PathParams>>;

/** A resolver of whatever kind, called once per execution. */
export interface OwnedResolver {
  run(info: AnyInfo, context: HandlerContext): Promise<Response | undefined>;
  /** Begins a generator from its start again. */
  reset(): void;
}

type Steps = Iterator<unknown, unknown> | AsyncIterator<unknown, unknown>;

const stepsOf = (result: unknown): Steps | undefined => {
  if (typeof result !== 'object' || result === null) return undefined;
  if (Symbol.iterator in result) return (result as Iterable<unknown, unknown>)[Symbol.iterator]();
  return Symbol.asyncIterator in result ? (result as AsyncIterable<unknown, unknown>)[Symbol.asyncIterator]() : undefined;
};

const toResponse = (value: unknown): Response | undefined => (value instanceof Response ? value : undefined);

/**
 * Owns the iterator of a generator resolver. MSW would keep it and, from the second request on, call it directly: past
 * the engine, once more for every repeat.
 */
export const ownResolver = (resolver: (info: never) => unknown): OwnedResolver => {
  let steps: Steps | undefined;
  let last: Response | undefined;
  const next = async (iterator: Steps): Promise<Response | undefined> => {
    const { done, value } = await iterator.next();
    const response = toResponse(await value);
    // As in MSW, a generator that is at its end goes on giving its last answer.
    if (response) last = response.clone();
    return response ?? (done ? last?.clone() : undefined);
  };
  const call = async (info: AnyInfo, context: HandlerContext): Promise<Response | undefined> => {
    if (steps) return next(steps);
    // Assigned, not spread: reading `finalize` has an effect.
    const result = resolver(Object.assign(info, { idempotency: context }) as never);
    // At once where it can be, so that two first requests share one iterator.
    steps ??= stepsOf(result);
    if (steps) return next(steps);
    const value = await result;
    steps ??= stepsOf(value);
    return steps ? next(steps) : toResponse(value);
  };
  return {
    async run(info, context) {
      try {
        return await call(info, context);
      } catch (thrown) {
        // MSW lets a resolver throw its answer.
        if (thrown instanceof Response) return thrown;
        throw thrown;
      }
    },
    reset() {
      steps = undefined;
      last = undefined;
    },
  };
};
