import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { borrowedBody } from './node-body.js';
import { announcesBody, type RequestParts } from './node-request.js';

interface Kept {
  readonly chunks: Uint8Array[];
  isWhole: boolean;
}

/** What content-type parsers have read, by request. */
const kept = new WeakMap<IncomingMessage, Kept>();

/** A body on its way to a content-type parser. */
export type Payload = Readable & { readonly receivedEncodedLength?: number };

/** The same payload, of which the bytes are kept as a parser reads them. One that nobody reads stays untouched. */
export const keepingBytes = (incoming: IncomingMessage, payload: Payload): Payload => {
  const one: Kept = { chunks: [], isWhole: false };
  kept.set(incoming, one);
  const read = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of payload) {
      one.chunks.push(chunk as Uint8Array);
      yield chunk as Uint8Array;
    }
    one.isWhole = true;
  };
  // A payload that was decoded on its way says how long it was before; Fastify compares that with Content-Length.
  return Object.defineProperty(Readable.from(read(), { objectMode: false }), 'receivedEncodedLength', { get: () => payload.receivedEncodedLength });
};

/** The body as it was sent, whether a parser has read it or leaves that to the handler. */
export const bodyOf = (incoming: IncomingMessage): RequestParts['body'] => {
  if (!announcesBody(incoming)) return undefined;
  const { chunks, isWhole } = kept.get(incoming) ?? { chunks: [], isWhole: false };
  if (isWhole) return new Uint8Array(Buffer.concat(chunks));
  if (!incoming.readableDidRead) return borrowedBody(incoming);
  throw new Error(
    `The body (${incoming.headers['content-type'] ?? 'without a type'}) was read before the handler, past its content-type parser, so nobody can tell a retry from another request. ` +
      'Read it in the handler.',
  );
};
