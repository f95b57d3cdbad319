import type { IncomingMessage } from 'node:http';
import { ownBody } from './node-body.js';

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Whether the client announced a body that is not empty, as far as the head tells. */
export const announcesBody = ({ method = 'GET', headers }: IncomingMessage): boolean =>
  !BODILESS.has(method) && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0');

const headersOf = ({ rawHeaders }: IncomingMessage): Headers => {
  const headers = new Headers();
  // Raw, because Node keeps only the first of some repeated headers, and a key that was sent twice must be seen twice.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    // The pseudo-headers of HTTP/2 are no headers.
    if (!name.startsWith(':')) headers.append(name, rawHeaders[at + 1] ?? '');
  }
  return headers;
};

const urlOf = ({ headers, socket }: IncomingMessage, target: string): string | URL => {
  const scheme = 'encrypted' in socket && socket.encrypted ? 'https' : 'http';
  const authority = headers.host ?? headers[':authority'] ?? 'localhost';
  const base = `${scheme}://${String(authority)}`;
  // Joined, not resolved: `//a/b` is a path here and would name another host there.
  return target.startsWith('/') ? base + target : new URL(target, base);
};

export interface RequestParts {
  /** The request target as it was sent. @default incoming.url */
  readonly target?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** @default read from `incoming` */
  readonly body?: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | string | undefined;
}

/** The client's fault: Express asks for `status`, Fastify for `statusCode`. */
const unreadable = (cause: unknown): Error =>
  Object.assign(new TypeError(`The request cannot be read: ${(cause as Error).message}`, { cause }), { status: 400, statusCode: 400 });

/** A request of node:http as a fetch request. Throws where it makes no sense as one, such as for a Host with a space in it. */
export const requestFrom = (incoming: IncomingMessage, { target = incoming.url ?? '/', signal, body }: RequestParts = {}): Request => {
  const sent = announcesBody(incoming) ? (body ?? ownBody(incoming)) : undefined;
  try {
    return new Request(urlOf(incoming, target), {
      method: incoming.method ?? 'GET',
      headers: headersOf(incoming),
      ...(signal && { signal }),
      ...(sent !== undefined && { body: sent, duplex: 'half' }),
    });
  } catch (error) {
    throw unreadable(error);
  }
};
