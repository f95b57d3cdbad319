import { aFunction, checkKind, shown, withMethods, type Kind } from '../checks.js';
import { checkHandleOptions } from './option-kinds.js';

const REQUEST: Kind = {
  ...withMethods('a fetch Request was expected', 'clone', 'arrayBuffer'),
  advice: () => 'Express and Fastify have adapters for theirs, node:http has toNodeListener: see samekey/server/adapters.',
};

/** What `handle` is given. */
export interface GivenCall {
  readonly request: unknown;
  readonly handler: unknown;
  readonly options: unknown;
}

/** @throws TypeError for what `handle` cannot work with */
export const checkCall = ({ request, handler, options }: GivenCall): void => {
  checkKind('The request of dedup.handle', request, REQUEST);
  checkKind('The handler of dedup.handle', handler, aFunction);
  checkHandleOptions(options, 'dedup.handle');
};

/** @throws TypeError for a request whose body is gone */
export const ensureUnread = (request: Request): void => {
  if (!request.bodyUsed && !request.body?.locked) return;
  throw new TypeError('The body of the request was read before dedup.handle got it, so nobody can tell a retry from another request. Give dedup.handle the unread request, and read what you need from request.clone().');
};

/** By its shape, because it may come from another implementation of fetch. */
const isResponse = (value: unknown): boolean => {
  const { status, headers } = (value ?? {}) as { readonly status?: unknown; readonly headers?: unknown };
  return typeof status === 'number' && headers !== null && typeof headers === 'object' && 'get' in headers;
};

/**
 * What a handler returned; undefined where the request is none of its business.
 *
 * @throws TypeError for what is neither
 */
export const answerOf = (returned: Response | undefined, name: string): Response | undefined => {
  if (returned === undefined || isResponse(returned)) return returned;
  throw new TypeError(`The handler of "${name}" returned ${shown(returned)}; a Response was expected. Return one, as in return Response.json(charge, { status: 201 }).`);
};
