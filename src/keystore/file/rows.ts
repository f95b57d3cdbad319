import { crc32 } from 'node:zlib';
import type { HeadRef, StoredHead, Write, WriteResult } from '../keystore.js';

/** A head as it lies in a table. What the store orders by are columns; the head itself is JSON beside its bytes. */
export interface Row extends HeadRef {
  readonly shelf: StoredHead['shelf'];
  readonly version: number;
  readonly due: number;
  readonly written_at: number;
  readonly format: number;
  /** Of the JSON and the bytes; SQLite has no checksums in its main file, and flipped bits must not be sent to a bank. */
  readonly sum: number;
  readonly head: string;
  readonly request: Uint8Array | null;
  readonly response: Uint8Array | null;
}

/** A {@link Write} with its head as a row. It can cross to another thread. */
export interface RowWrite {
  readonly ref: HeadRef;
  readonly expect: 'absent' | number;
  readonly next: Row | undefined;
}

export type RowResult = { readonly kind: 'ok' } | { readonly kind: 'conflict'; readonly row: Row | undefined };

const viewOf = (bytes: ArrayBuffer | null): Uint8Array | null => bytes && new Uint8Array(bytes);

const bufferOf = (bytes: Uint8Array | null): ArrayBuffer | null =>
  bytes && ((bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer) as ArrayBuffer);

const sumOf = (head: string, request: Uint8Array | null, response: Uint8Array | null): number => {
  const withRequest = request ? crc32(request, crc32(head)) : crc32(head);
  return response ? crc32(response, withRequest) : withRequest;
};

const encode = (head: StoredHead): Row => {
  const json = JSON.stringify({ ...head, request: undefined, response: undefined });
  const request = viewOf(head.request);
  const response = viewOf(head.response);
  return {
    client: head.client,
    scope: head.scope,
    id: head.id,
    shelf: head.shelf,
    version: head.version,
    due: head.due,
    written_at: head.writtenAt,
    format: head.format,
    sum: sumOf(json, request, response),
    head: json,
    request,
    response,
  };
};

const LONE_SURROGATE = /\p{Surrogate}/u;

/** SQLite keeps text as UTF-8, where all lone surrogates become one character and two names would become one. */
const assertWellFormed = ({ client, scope, id }: HeadRef): void => {
  const broken = [client, scope, id].find(text => LONE_SURROGATE.test(text));
  if (broken !== undefined) throw new TypeError(`${JSON.stringify(broken)} has half a surrogate pair, which no file can keep. Use well-formed text in names and scopes.`);
};

export const encodeWrite = ({ ref, expect, next }: Write): RowWrite => {
  assertWellFormed(ref);
  return { ref: { client: ref.client, scope: ref.scope, id: ref.id }, expect, next: next && encode(next) };
};

const isSame = (row: Row, head: StoredHead): boolean =>
  head.client === row.client &&
  head.scope === row.scope &&
  head.id === row.id &&
  head.version === row.version &&
  head.shelf === row.shelf &&
  head.due === row.due;

const unreadable = (row: Row, why: string): StoredHead => ({
  client: row.client,
  scope: row.scope,
  id: row.id,
  version: row.version,
  shelf: row.shelf,
  due: row.due,
  writtenAt: row.written_at,
  format: row.format,
  unreadable: why,
  request: bufferOf(row.request),
  response: bufferOf(row.response),
});

/** The head of a row; one that says why it cannot be read when what is there is not what was written. */
export const decode = (row: Row): StoredHead => {
  try {
    if (row.sum !== sumOf(row.head, row.request, row.response)) return unreadable(row, 'its checksum does not match: the bytes on disk have changed since they were written');
    const head = { ...(JSON.parse(row.head) as StoredHead), request: bufferOf(row.request), response: bufferOf(row.response) };
    return isSame(row, head) ? head : unreadable(row, 'its columns contradict the record in it');
  } catch (error) {
    return unreadable(row, `its record cannot be parsed: ${(error as Error).message}`);
  }
};

export const decodeResult = (result: RowResult): WriteResult => (result.kind === 'ok' ? result : { kind: 'conflict', head: result.row && decode(result.row) });
