import { BodyNotReplayableError } from './errors.js';
import { fingerprint } from './fingerprint.js';
import type { Frozen, HeaderList, SnapshotMeta } from './operation.js';
import type { Profile } from './profiles/profile.js';

/** Headers that say who the caller is. They are asked for again at every send and never stored. */
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization', 'x-api-key']);

export interface SnapshotOptions {
  readonly profile: Profile;
  /** Longest body that can be kept, bytes. */
  readonly maxBodyBytes: number;
  /** Further header names to treat as credentials, lower case. */
  readonly secretHeaders: readonly string[];
}

/** A request as it can be stored, without its key, and the credentials that came with it, which can not. */
export interface FrozenRequest extends Frozen {
  readonly credentials: HeaderList;
  /** The key that the caller set itself. */
  readonly givenKey: string | undefined;
}

/** What a Request does not tell of itself. */
export interface RequestTraits {
  /** The caller asked the platform to follow redirects. */
  readonly follow: boolean;
  /** The body may be a stream. */
  readonly streaming: boolean;
}

/** Whether a header (lower case) is a credential: by the standard, or by the caller's word. */
export const isCredential = (name: string, secretHeaders: readonly string[]): boolean =>
  CREDENTIALS.has(name) || secretHeaders.includes(name);

const tooLarge = (limit: number): BodyNotReplayableError =>
  new BodyNotReplayableError(
    `The request body is larger than maxBodyBytes (${limit} bytes), so it cannot be kept and sent again. Nothing was sent. ` +
      'Raise maxBodyBytes, or upload the content first and send a reference to it.',
  );

const readStream = async (stream: ReadableStream<Uint8Array>, limit: number): Promise<ArrayBuffer> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    size += next.value.byteLength;
    if (size > limit) {
      await reader.cancel();
      throw tooLarge(limit);
    }
    chunks.push(next.value);
  }
  // Whoever made the request may still want to cancel its body.
  reader.releaseLock();
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes.buffer;
};

const readBody = async (request: Request, streaming: boolean, limit: number): Promise<ArrayBuffer | null> => {
  if (request.bodyUsed) {
    throw new BodyNotReplayableError('The request body was read before this call, so it would be sent empty. Nothing was sent. Pass a fresh Request, or the body itself.');
  }
  // Only a stream can be endless, and must be stopped at the limit; all else is there already.
  const bytes = streaming && request.body ? await readStream(request.body, limit) : await request.arrayBuffer();
  if (bytes.byteLength > limit) throw tooLarge(limit);
  return bytes.byteLength === 0 ? null : bytes;
};

/** The key that came with a request, without the quotes of a structured field. */
const givenKeyOf = ({ headers }: Request, body: ArrayBuffer | null, { header, bodyField }: Profile): string | undefined => {
  if (bodyField) return bodyField.read(body);
  return header && headers.get(header)?.replace(/^"((?:[^"\\]|\\.)*)"$/, (_, quoted: string) => quoted.replace(/\\(.)/g, '$1'));
};

/** Fingerprint of a snapshot; asked for again before stored bytes are sent. */
export const fingerprintOf = (snapshot: SnapshotMeta, body: ArrayBuffer | null, profile: Profile): Promise<string> => {
  const url = new URL(snapshot.url);
  const headers = new Map<string, string>(snapshot.headers);
  return fingerprint({
    method: snapshot.method,
    target: url.origin + url.pathname,
    query: url.search.slice(1),
    contentType: snapshot.contentType,
    body: new Uint8Array(body ?? new ArrayBuffer(0)),
    identity: profile.identityHeaders.map(name => headers.get(name) ?? ''),
  });
};

/**
 * Freezes a request: its bytes are read once, and every attempt sends exactly them.
 *
 * @throws BodyNotReplayableError for a body that was read before, or is larger than `maxBodyBytes`
 * @throws TypeError for a body that cannot carry the key where the profile wants it to
 */
export const freeze = async (request: Request, { follow, streaming }: RequestTraits, { profile, maxBodyBytes, secretHeaders }: SnapshotOptions): Promise<FrozenRequest> => {
  const { header, bodyField } = profile;
  const given = await readBody(request, streaming, maxBodyBytes);
  const givenKey = givenKeyOf(request, given, profile);
  // Each send writes the operation's key; two requests that differ in it alone ask for the same thing.
  const body = bodyField ? bodyField.write(given, '') : given;
  const keyHeader = header?.toLowerCase();
  const headers: [string, string][] = [];
  const credentials: [string, string][] = [];
  for (const [name, value] of request.headers) {
    if (name !== 'content-type' && name !== keyHeader) (isCredential(name, secretHeaders) ? credentials : headers).push([name, value]);
  }
  const snapshot: SnapshotMeta = {
    method: request.method,
    url: request.url,
    headers,
    contentType: request.headers.get('content-type') ?? undefined,
    credentials: request.credentials === 'same-origin' ? undefined : request.credentials,
    follow: follow || undefined,
  };
  return { snapshot, body, givenKey, credentials, fingerprint: await fingerprintOf(snapshot, body, profile) };
};
