import { ietf } from '../profiles/ietf.js';
import type { Profile } from '../profiles/profile.js';
import { withHeaders } from './answer.js';
import type { HeaderList } from './record.js';

export interface CorsOptions {
  /** Origins whose pages may call, or all. */
  readonly origins: readonly string[] | '*';
  /** Whose key headers preflights allow. @default ietf */
  readonly profile?: Profile | undefined;
  /** Further request headers that preflights allow. Content-Type, If-Match and If-None-Match are always among them. */
  readonly headers?: readonly string[] | undefined;
}

type FetchHandler = (request: Request) => Response | Promise<Response>;

/** s; what browsers keep at most differs, and all of them keep less. */
const PREFLIGHT_MAX_AGE = '86400';

/** What a page needs to say which version of a resource it means, and to learn it. */
const PRECONDITIONS = ['If-Match', 'If-None-Match'];
const VERSION = 'ETag';

/**
 * Lets pages of other origins call a keyed endpoint: preflights allow the key header, and every answer, replays and
 * refusals too, carries the permission. It belongs around `dedup.handle`, which never stores such headers and exposes
 * its own by itself. Credentials are not allowed; take your framework's CORS for those.
 */
export const withCors = (handler: FetchHandler, { origins, profile = ietf, headers = [] }: CorsOptions): FetchHandler => {
  const allowed = (origin: string | null): origin is string => origin !== null && (origins === '*' || origins.includes(origin));
  return async request => {
    const origin = request.headers.get('origin');
    const permission: HeaderList = allowed(origin) ? [['Access-Control-Allow-Origin', origin], ['Access-Control-Expose-Headers', VERSION], ['Vary', 'Origin']] : [['Vary', 'Origin']];
    if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return withHeaders(await handler(request), permission);
    return withHeaders(new Response(null, { status: 204 }), [
      ...permission,
      ['Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
      ['Access-Control-Allow-Headers', [profile.header, profile.firstSentHeader, 'Content-Type', ...PRECONDITIONS, ...headers].filter(Boolean).join(', ')],
      ['Access-Control-Max-Age', PREFLIGHT_MAX_AGE],
    ]);
  };
};
