import { isPassthroughResponse } from 'msw';
import { MOCK_HEADER } from './mark.js';

/** What the mocked server allows to pages of other origins, as it would say in its CORS headers. */
export interface MockCors {
  /** Request headers that a preflight allows (`Access-Control-Allow-Headers`); '*' for all but Authorization. @default [] */
  readonly allowHeaders?: readonly string[] | '*' | undefined;
  /** Response headers that a page may read (`Access-Control-Expose-Headers`); '*' for all. @default [] */
  readonly exposeHeaders?: readonly string[] | '*' | undefined;
}

/** What pages may send without being allowed to; Content-Type only with a media type of forms. */
const SAFE_REQUEST: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-language', 'range']);
const FORM_TYPE = /^\s*(application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(;|$)/i;

/** Browsers set these themselves, and ask nobody. */
const BROWSERS_OWN =
  /^(accept-charset|accept-encoding|connection|content-length|cookie|date|dnt|expect|host|keep-alive|origin|priority|referer|te|trailer|transfer-encoding|upgrade|user-agent|via|access-control-request-.*|proxy-.*|sec-.*)$/;

const SAFE_RESPONSE: ReadonlySet<string> = new Set(['cache-control', 'content-language', 'content-length', 'content-type', 'expires', 'last-modified', 'pragma', MOCK_HEADER.toLowerCase()]);

const names = (list: readonly string[]): ReadonlySet<string> => new Set(list.map(name => name.toLowerCase()));

const isCrossOrigin = ({ url }: Request): boolean => new URL(url).origin !== (globalThis.location as Location | undefined)?.origin;

/** The headers for which a preflight would fail; none where all is well, or where the page asks its own origin. */
export const forbiddenBy = ({ allowHeaders = [] }: MockCors, request: Request): string[] => {
  if (!isCrossOrigin(request)) return [];
  const allowed = allowHeaders === '*' ? undefined : names(allowHeaders);
  const isAllowed = (name: string): boolean => (allowed ? allowed.has(name) : name !== 'authorization');
  const isSafe = (name: string, value: string): boolean => SAFE_REQUEST.has(name) || BROWSERS_OWN.test(name) || (name === 'content-type' && FORM_TYPE.test(value));
  return [...request.headers].filter(([name, value]) => !isSafe(name, value) && !isAllowed(name)).map(([name]) => name);
};

/** The response as a page of another origin may read it. */
export const exposedBy = ({ exposeHeaders = [] }: MockCors, request: Request, response: Response): Response => {
  const isAnswer = response.type !== 'error' && !isPassthroughResponse(response);
  if (exposeHeaders === '*' || !isAnswer || !isCrossOrigin(request)) return response;
  const exposed = names(exposeHeaders);
  const headers = [...response.headers].filter(([name]) => SAFE_RESPONSE.has(name) || exposed.has(name));
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
};
