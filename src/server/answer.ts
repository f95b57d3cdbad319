import type { Profile } from '../profiles/profile.js';
import { readUpTo } from './bytes.js';

import type { HeaderList, StoredAnswer } from './record.js';
import type { Outcome } from './run.js';

/** Belong to one connection, one moment or one caller; a replay has its own, or must not have them. */
const NOT_STORED: ReadonlySet<string> = new Set([
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'proxy-connection',
  'content-length', 'date', 'age', 'server',
  'set-cookie', 'set-cookie2', 'www-authenticate', 'proxy-authenticate', 'authentication-info', 'proxy-authentication-info', 'clear-site-data',
  'idempotency-status', 'idempotent-replayed',
  'request-id', 'x-request-id', 'x-correlation-id', 'traceparent', 'tracestate', 'x-amzn-trace-id', 'x-cloud-trace-context',
]);

const NOT_STORED_FAMILY = /^(access-control-|ratelimit|x-ratelimit|x-b3-)/;

/** Turned away before anything happened: by a login, a limit or a precondition of transport. It says nothing about the request. */
const NOT_ADMITTED: ReadonlySet<number> = new Set([401, 403, 407, 421, 423, 425, 429, 431]);

/** Live streams have no end to wait for. */
const LIVE = /^text\/event-stream\b/i;

/** The headers of an answer that a replay may have. */
export const storableHeaders = (headers: Headers, mayStore: (name: string) => boolean): HeaderList => {
  const named = (headers.get('connection') ?? '').toLowerCase().split(',').map(name => name.trim());
  return [...headers].filter(([name]) => !NOT_STORED.has(name) && !NOT_STORED_FAMILY.test(name) && !named.includes(name) && mayStore(name));
};

export interface StoringRules {
  readonly stores: Profile['stores'];
  /** bytes */
  readonly maxAnswerBytes: number;
  readonly mayStore: (name: string) => boolean;
}

const capture = async (response: Response, { maxAnswerBytes, mayStore }: StoringRules): Promise<StoredAnswer> => {
  const answer = { status: response.status, headers: storableHeaders(response.headers, mayStore), body: null };
  if (response.body === null) return answer;
  if (LIVE.test(response.headers.get('content-type') ?? '')) return { ...answer, omitted: 'streaming' };
  try {
    const body = await readUpTo(response.clone().body as ReadableStream<Uint8Array>, maxAnswerBytes);
    return body ? { ...answer, body } : { ...answer, omitted: 'too_large' };
  } catch {
    // Used up already, or broken off. The handler is done and has said how it ended; nothing may run it again.
    return { ...answer, omitted: 'unreadable' };
  }
};

/** What a handler's answer says about the key. The answer itself stays readable. */
export const outcomeOf = async (response: Response, rules: StoringRules): Promise<Outcome<Response>> => {
  const { status, type } = response;
  if (type === 'error') return { kind: 'failed', reason: 'network error', value: response };
  if (NOT_ADMITTED.has(status)) return { kind: 'not-admitted', value: response };
  if (rules.stores !== 'all' && (status >= 500 || status === 408)) return { kind: 'failed', reason: `status ${status}`, value: response };
  if (rules.stores === 'success' && status >= 400) return { kind: 'refused', value: response };
  return { kind: 'final', answer: await capture(response, rules), value: response };
};

/** The stored answer once more, byte by byte. */
export const replayOf = ({ status, headers, body }: StoredAnswer): Response =>
  new Response(body, { status, headers: headers.map(([name, value]): [string, string] => [name, value]) });

/** Lists, to which others add as well. */
const ADDED_TO: ReadonlySet<string> = new Set(['Access-Control-Expose-Headers', 'Vary']);

/** The response with more headers. Those of a fetched response cannot be changed, so it may be another object. */
export const withHeaders = (response: Response, extra: HeaderList): Response => {
  // A network error of a mock: it has no headers, and cannot be made anew.
  if (response.type === 'error') return response;
  const add = (headers: Headers): void => {
    for (const [name, value] of extra) {
      if (ADDED_TO.has(name)) headers.append(name, value);
      else headers.set(name, value);
    }
  };
  try {
    add(response.headers);
    return response;
  } catch {
    const headers = new Headers(response.headers);
    add(headers);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
};
