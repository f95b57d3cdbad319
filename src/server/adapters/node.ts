import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable, promises } from 'node:stream';
import { putHeaders } from './node-headers.js';
import { requestFrom } from './node-request.js';

/** What `createServer` of node:http takes. */
export type NodeListener = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Any fetch-style handler. */
export type FetchHandler = (request: Request) => Response | Promise<Response>;

export interface NodeListenerOptions {
  /** What the handler threw, or what could not be read as a request; the client gets 500 or 400. @default console.error */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const send = async (response: Response, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
  putHeaders(outgoing, response.headers);
  outgoing.writeHead(response.status, response.statusText || undefined);
  if (response.body === null || incoming.method === 'HEAD') {
    outgoing.end();
    return;
  }
  const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
  // The pipeline reports the first error and lets go; a body that fails after its client has gone must not end the process.
  body.on('error', () => {});
  await promises.pipeline(body, outgoing);
};

/** `dedup.handle` gives nothing where its handler does. */
const ensureResponse = (response: Response | undefined): Response => {
  if (response) return response;
  throw new TypeError('The handler gave no Response, but one was expected. Return one for every request, a 404 for those that are not its business.');
};

const refuse = (outgoing: ServerResponse, status: number): void => {
  if (outgoing.headersSent) outgoing.destroy();
  else outgoing.writeHead(status, { 'content-type': 'text/plain', 'cache-control': 'no-store' }).end();
};

// oxlint-disable-next-line no-console -- where nobody listens a failure must still not vanish
const report = (error: unknown): void => console.error('A request could not be served.', error);

/**
 * Serves a fetch-style handler with node:http. Bodies are streamed both ways. `request.signal` aborts when the client
 * goes away before it has the answer; the handler is not stopped by that, and a `dedup.handle` inside it stores its answer.
 *
 * @example createServer(toNodeListener(request => dedup.handle(request, charge, { name: 'charge' }))).listen(8080)
 */
export const toNodeListener =
  (handler: FetchHandler, { onError = report }: NodeListenerOptions = {}): NodeListener =>
  (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) gone.abort(new DOMException('The client closed the connection.', 'AbortError'));
    });
    const serve = async (): Promise<void> => {
      let request: Request;
      try {
        request = requestFrom(incoming, { signal: gone.signal });
      } catch (error) {
        onError(error);
        return refuse(outgoing, 400);
      }
      try {
        await send(ensureResponse(await handler(request)), incoming, outgoing);
        // What nobody has read of the body; the connection serves nothing else before it.
        if (request.body && !request.body.locked) await request.body.cancel();
      } catch (error) {
        if (gone.signal.aborted) return undefined;
        onError(error);
        refuse(outgoing, 500);
      }
      return undefined;
    };
    void serve();
  };
