import { STREAM_HEADER } from './scenario.js';
import type { RunContext, Scenarios } from './scenarios.js';

/** A request of node:http, Connect or Express, by shape. */
export interface IncomingLike extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Express cuts the mount path off `url`, and keeps the whole one here. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly readableEnded: boolean;
  /** What a body parser has made of it. */
  readonly body?: unknown;
  /** What the dedup layer tells the handler, where it says so on the request. */
  readonly idempotency?: RunContext | undefined;
}

/** A response of node:http, Connect or Express, by shape. */
export interface OutgoingLike {
  statusCode: number;
  setHeader(name: string, value: string | readonly string[]): unknown;
  write(chunk: Uint8Array): boolean;
  end(chunk?: Uint8Array): unknown;
  destroy(error?: Error): unknown;
  /** Express's way to answer, which some layers watch instead of `end`. */
  send?(body?: string | Uint8Array): unknown;
}

export type NodeScenarioListener = (incoming: IncomingLike, outgoing: OutgoingLike, next?: (error?: unknown) => void) => Promise<void>;

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

const collect = async (chunks: AsyncIterable<Uint8Array>): Promise<Blob> => {
  const parts: BlobPart[] = [];
  for await (const chunk of chunks) parts.push(new Uint8Array(chunk));
  return new Blob(parts);
};

/** As exactly as it can still be had: the parsed body where a parser was first. */
const bodyOf = async (incoming: IncomingLike): Promise<BodyInit> => {
  const { body } = incoming;
  if (body instanceof Uint8Array) return new Uint8Array(body);
  if (typeof body === 'string') return body;
  if (body !== undefined) return JSON.stringify(body);
  return incoming.readableEnded ? '' : collect(incoming);
};

const requestOf = async (incoming: IncomingLike): Promise<Request> => {
  const { method = 'GET', url = '/', originalUrl = url, rawHeaders } = incoming;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  const target = `http://scenario.test${originalUrl}`;
  return new Request(target, { method, headers, ...(!BODILESS.has(method) && { body: await bodyOf(incoming) }) });
};

const stream = async (body: ReadableStream<Uint8Array>, outgoing: OutgoingLike): Promise<void> => {
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) outgoing.write(read.value);
    outgoing.end();
  } catch (error) {
    outgoing.destroy(error as Error);
  }
};

const sendHead = (response: Response, outgoing: OutgoingLike): void => {
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) {
    if (name !== 'set-cookie') outgoing.setHeader(name, value);
  }
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
};

/** What a route of Express would give to `send`: text where it is text, so that layers which keep text see some. */
const asSent = (bytes: Uint8Array<ArrayBuffer>, type: string): string | Uint8Array => {
  if (!/^text\/|json/.test(type)) return bytes;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return bytes;
  }
};

const sendWhole = (bytes: Uint8Array<ArrayBuffer> | undefined, type: string, outgoing: OutgoingLike): void => {
  if (outgoing.send) outgoing.send(bytes && asSent(bytes, type));
  else outgoing.end(bytes);
};

const send = async (response: Response, incoming: IncomingLike, outgoing: OutgoingLike): Promise<void> => {
  sendHead(response, outgoing);
  if (response.body !== null && response.headers.has(STREAM_HEADER)) return stream(response.body, outgoing);
  const hasBody = response.body !== null && incoming.method !== 'HEAD';
  return sendWhole(hasBody ? new Uint8Array(await response.arrayBuffer()) : undefined, response.headers.get('content-type') ?? '', outgoing);
};

/**
 * The scenario handler as a listener of node:http or as an Express handler. What it throws goes to `next`, as a route of
 * Express has it; without `next` it is answered with 500.
 *
 * @example app.use('/conformance', yourDedupLayer, toNodeScenarioListener(scenarios));
 */
export const toNodeScenarioListener =
  ({ handler }: Pick<Scenarios, 'handler'>): NodeScenarioListener =>
  async (incoming, outgoing, next) => {
    try {
      await send(await handler(await requestOf(incoming), incoming.idempotency), incoming, outgoing);
    } catch (error) {
      if (next) return next(error);
      outgoing.statusCode = 500;
      outgoing.end();
    }
    return undefined;
  };
