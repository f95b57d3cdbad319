import { canonicalJson } from './canonical-json.js';
import { digest, frame } from './key.js';

/** What two requests must have in common to ask for the same thing. Client and server share this one rule. */
export interface FingerprintInput {
  readonly method: string;
  /** Origin and path on the client, path on the server. */
  readonly target: string;
  /** Without the question mark. The order of different names does not matter, the order of equal ones does. */
  readonly query: string;
  /** Only its essence counts: no charset, no multipart boundary. */
  readonly contentType: string | undefined;
  readonly body: Uint8Array<ArrayBuffer>;
  /** Values of the profile's identity headers: the same request for another account is another request. */
  readonly identity?: readonly string[];
}

const encoder = new TextEncoder();

/** Of a body or a query that is compared part by part. More take seconds and a gigabyte, while nobody else is served; then its bytes are compared. */
const MAX_PARTS = 100_000;

/** Keeps a byte order mark (it is content) and refuses bytes that are not UTF-8, so that two different ones never become equal. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const essenceOf = (contentType: string | undefined): string => (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

const boundaryOf = (contentType: string): string | undefined => {
  const [, quoted, bare] = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? [];
  return quoted ?? bare;
};

/** Latin-1 text of bytes: one character per byte, so that text search works on any content. */
const binaryText = (bytes: Uint8Array): string => {
  let text = '';
  // In pieces, because the number of arguments of a call is limited.
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
};

/** The parts as they were written, without the random boundary between them. */
const multipart = (bytes: Uint8Array, boundary: string): string | undefined => {
  const pieces = `\r\n${binaryText(bytes)}`.split(`\r\n--${boundary}`, MAX_PARTS);
  return pieces.length > 1 && pieces.length < MAX_PARTS && pieces.at(-1)?.startsWith('--') ? frame(pieces.slice(1, -1)) : undefined;
};

const textual = (bytes: Uint8Array, canonical: (text: string) => string | undefined): string | undefined => {
  try {
    return canonical(decoder.decode(bytes));
  } catch {
    return undefined;
  }
};

const component = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '));

/**
 * Names and values of a query or a form, decoded; undefined where there are too many, or where that would lose something:
 * URLSearchParams makes one character of all bytes that are not UTF-8, and so equals of what is not.
 */
const pairsOf = (text: string): [name: string, value: string][] | undefined => {
  const pair = (part: string): [string, string] => {
    const at = part.includes('=') ? part.indexOf('=') : part.length;
    return [component(part.slice(0, at)), component(part.slice(at + 1))];
  };
  const parts = text.split('&', MAX_PARTS);
  if (parts.length === MAX_PARTS) return undefined;
  try {
    return parts.filter(Boolean).map(pair);
  } catch {
    return undefined;
  }
};

const framePairs = (pairs: readonly [string, string][] | undefined): string | undefined => pairs && frame(pairs.flat());

/** The body without what carries no meaning; undefined where its bytes are its meaning. */
const canonicalBody = (bytes: Uint8Array, contentType: string): string | undefined => {
  const essence = essenceOf(contentType);
  if (essence === 'multipart/form-data') {
    const boundary = boundaryOf(contentType);
    return boundary === undefined ? undefined : multipart(bytes, boundary);
  }
  if (essence === 'application/x-www-form-urlencoded') return textual(bytes, text => framePairs(pairsOf(text)));
  if (essence === 'application/json' || essence.endsWith('+json')) return textual(bytes, canonicalJson);
  return undefined;
};

/** By name; equal names keep their order, because the sort is stable. */
const sortedQuery = (query: string): string =>
  framePairs(pairsOf(query)?.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) ?? frame([query]);

const concat = (head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
};

/** Says whether two requests ask for the same thing: `v1:` and a hash over length-framed parts. */
export const fingerprint = async (input: FingerprintInput): Promise<string> => {
  const canonical = input.body.length === 0 ? '' : canonicalBody(input.body, input.contentType ?? '');
  const head = frame([
    input.method.toUpperCase(),
    input.target,
    sortedQuery(input.query),
    essenceOf(input.contentType),
    frame(input.identity ?? []),
    canonical === undefined ? 'bytes' : 'canonical',
  ]);
  return `v1:${await digest(concat(encoder.encode(head), canonical === undefined ? input.body : encoder.encode(canonical)))}`;
};
