import type { IncomingMessage } from 'node:http';
import { borrowedBody } from './node-body.js';
import { announcesBody, type RequestParts } from './node-request.js';

/** A request on which body parsers leave what they made. */
interface ParsedRequest extends IncomingMessage {
  readonly body?: unknown;
  /** The bytes as they were sent, kept by a `verify` hook or by the platform. */
  readonly rawBody?: unknown;
}

const MULTIPART = /^multipart\//i;

const isWhole = (value: unknown): value is Uint8Array<ArrayBuffer> | string => typeof value === 'string' || value instanceof Uint8Array;

/**
 * The body, whether somebody has read it before or not. Where a parser has, the sent bytes are gone unless they were
 * kept; then the parsed value stands for them: two bodies that it made the same of count as the same request.
 */
export const bodyOf = (request: IncomingMessage): RequestParts['body'] => {
  const { body, rawBody, headers, readableDidRead } = request as ParsedRequest;
  if (!announcesBody(request)) return undefined;
  if (isWhole(rawBody)) return rawBody;
  if (!readableDidRead) return borrowedBody(request);
  if (isWhole(body)) return body;
  const type = headers['content-type'] ?? '';
  if (body !== undefined && body !== null && !MULTIPART.test(type)) return JSON.stringify(body);
  throw new Error(
    `The body (${type || 'without a type'}) was read before idempotent() and is nowhere to be found, so nobody can tell a retry from another request. ` +
      'Put idempotent() before what reads the body, or keep the sent bytes as req.rawBody.',
  );
};
