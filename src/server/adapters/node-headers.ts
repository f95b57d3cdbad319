/** As node:http and Fastify keep headers. */
export type HeaderValue = number | string | readonly string[] | undefined;
export type HeaderValues = Readonly<Record<string, HeaderValue>>;

/** A response under way whose headers can still be set. */
export interface HeaderSink {
  getHeaders(): HeaderValues;
  /** Replaces what is there. */
  setHeader(name: string, value: number | string | readonly string[]): unknown;
  removeHeader(name: string): unknown;
}

/** Lists, to which middleware around the handler adds as well: both count. */
const LISTS: ReadonlySet<string> = new Set(['access-control-expose-headers', 'vary']);

const SET_COOKIE = 'set-cookie';

/** The headers as they are now: some setters add to a list in place. */
export const headersNow = (sink: HeaderSink): HeaderValues =>
  Object.fromEntries(Object.entries(sink.getHeaders()).map(([name, value]) => [name, Array.isArray(value) ? [...(value as readonly string[])] : value]));

const isSame = (a: HeaderValue, b: HeaderValue): boolean => String(a) === String(b);

/** What has been set since `before`: that is the handler's, the rest belongs to what stands around it and to each client anew. */
export const headersSince = (before: HeaderValues, now: HeaderValues): Headers => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(now)) {
    if (value === undefined || isSame(value, before[name])) continue;
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value]) headers.append(name, String(one));
  }
  return headers;
};

/** Undoes what was done to the headers since `before`. */
export const resetHeaders = (sink: HeaderSink, before: HeaderValues): void => {
  const now = sink.getHeaders();
  for (const name of Object.keys(now)) {
    if (before[name] === undefined) sink.removeHeader(name);
  }
  for (const [name, value] of Object.entries(before)) {
    if (value !== undefined && !isSame(value, now[name])) sink.setHeader(name, value);
  }
};

const union = (a: HeaderValue, b: string): string => {
  const items = new Map(`${String(a ?? '')},${b}`.split(',').map(item => [item.trim().toLowerCase(), item.trim()]));
  items.delete('');
  return [...items.values()].join(', ');
};

/** Sets the headers of a response, several cookies and lists included. */
export const putHeaders = (sink: HeaderSink, headers: Headers): void => {
  const now = sink.getHeaders();
  for (const [name, value] of headers) {
    if (name !== SET_COOKIE) sink.setHeader(name, LISTS.has(name) ? union(now[name], value) : value);
  }
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) sink.setHeader(SET_COOKIE, cookies);
};
