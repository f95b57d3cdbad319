import type { HandlerContext } from '../handler.js';
import type { Dedup } from '../http.js';

interface Known {
  readonly dedup: object;
  readonly context: object;
}

/** By the framework's request. */
const known = new WeakMap<object, Known>();

/** The framework's request, by the fetch request that was made of it. */
const platformRequests = new WeakMap<Request, object>();

export const notePlatformRequest = (request: Request, platform: object): void => void platformRequests.set(request, platform);

/**
 * The framework's own request behind the fetch request that `scope` is given: there is the user whom a login middleware
 * found. Undefined where no adapter made it.
 *
 * @example scope: request => platformRequestOf<express.Request>(request)?.user?.id
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows its framework, this file does not
export const platformRequestOf = <Platform extends object>(request: Request): Platform | undefined => platformRequests.get(request) as Platform | undefined;

export const noteContext = <Tx>(platform: object, dedup: Dedup<Tx>, context: HandlerContext<Tx>): void => void known.set(platform, { dedup, context });

export const hasContext = (platform: object): boolean => known.has(platform);

/**
 * What a handler knows of its run, from the framework's request: the same as `request.idempotency`, with the type of the
 * dedup's transactions. Throws where the request has not come through that dedup.
 */
export const idempotencyOf = <Tx>(dedup: Dedup<Tx>, platform: object): HandlerContext<Tx> => {
  const found = known.get(platform);
  if (!found) throw new Error('This request has not come through an idempotency adapter. Put the adapter before the handler: see samekey/server/adapters.');
  if (found.dedup !== dedup) throw new Error('This request has come through another dedup than the one given. Give the one that its route was registered with.');
  return found.context as HandlerContext<Tx>;
};
