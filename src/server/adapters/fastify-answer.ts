import { PassThrough, Readable, pipeline } from 'node:stream';
import { headersSince, type HeaderValues } from './node-headers.js';

/** What Fastify is about to send. */
export interface Reply {
  readonly statusCode: number;
  getHeaders(): HeaderValues;
}

/** Statuses that have no body, whatever is sent. */
const NULL_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

const isStream = (payload: unknown): payload is NodeJS.ReadableStream => typeof (payload as { pipe?: unknown }).pipe === 'function';

/** Of whatever chunks: strings become bytes. */
const bytesOf = (stream: NodeJS.ReadableStream): ReadableStream<Uint8Array> => {
  const body = new PassThrough();
  // The reader of the body hears of a failure, nobody else waits for it.
  pipeline(stream, body, () => {});
  return Readable.toWeb(body) as ReadableStream<Uint8Array>;
};

const bodyOf = (payload: unknown): BodyInit | null => {
  if (payload === undefined || payload === null) return null;
  return isStream(payload) ? bytesOf(payload) : (payload as BodyInit);
};

/** A reply as a fetch response. */
export const responseOf = (reply: Reply, before: HeaderValues, payload: unknown): Response => {
  const headers = headersSince(before, reply.getHeaders());
  // Its status and headers win, as they do in Fastify.
  if (payload instanceof Response) {
    for (const [name, value] of payload.headers) {
      if (name === 'set-cookie') headers.append(name, value);
      else headers.set(name, value);
    }
    return new Response(payload.body, { status: payload.status, headers });
  }
  const { statusCode: status } = reply;
  return new Response(NULL_BODY.has(status) ? null : bodyOf(payload), { status, headers });
};

/** A body as Fastify takes it. */
export const payloadOf = ({ body }: Response): Readable | null => body && Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);

/** A body that is there already; so Fastify knows its length. */
export const wholePayloadOf = async (response: Response): Promise<Buffer | undefined> =>
  response.body === null ? undefined : Buffer.from(await response.arrayBuffer());
