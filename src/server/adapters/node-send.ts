import type { ServerResponse } from 'node:http';
import { putHeaders } from './node-headers.js';

/** The ways by which an answer goes out. */
export interface Door {
  writeHead(status: number): unknown;
  write(chunk: Uint8Array): boolean;
  end(): unknown;
  on(event: 'drain' | 'close', listener: () => void): unknown;
}

/** The ways as they are now, with all that has been put in them: compression, sessions, logs. */
export const doorOf = (outgoing: ServerResponse): Door => {
  const { writeHead, write, end, on } = outgoing;
  return {
    writeHead: status => writeHead.call(outgoing, status),
    write: chunk => Reflect.apply(write, outgoing, [chunk]),
    end: () => Reflect.apply(end, outgoing, []),
    on: (event, listener) => on.call(outgoing, event, listener),
  };
};

export interface SendOptions {
  /** @default as they are now */
  readonly door?: Door | undefined;
  /** Whether the body is still being written. @default () => false */
  readonly isLive?: (() => boolean) | undefined;
}

/** Writes the body as fast as the client takes it; when the client has left, the rest is let go. */
const pour = async (body: ReadableStream<Uint8Array>, outgoing: ServerResponse, door: Door, isLive: () => boolean): Promise<void> => {
  let wake = (): void => {};
  door.on('drain', () => wake());
  door.on('close', () => wake());
  for await (const chunk of body) {
    if (outgoing.destroyed) continue;
    const flows = door.write(chunk);
    // Compression keeps chunks back until it is told to flush, which the writer of a live answer has done too early.
    if (isLive()) (outgoing as { flush?: () => void }).flush?.();
    if (!flows && !outgoing.destroyed) await new Promise<void>(resolve => (wake = resolve));
  }
};

/** Sends a fetch response. What fails half way is cut off: it must not look like the end. */
export const sendResponse = async (response: Response, outgoing: ServerResponse, { door = doorOf(outgoing), isLive = () => false }: SendOptions = {}): Promise<void> => {
  putHeaders(outgoing, response.headers);
  outgoing.statusMessage = response.statusText;
  door.writeHead(response.status);
  try {
    if (response.body) await pour(response.body, outgoing, door, isLive);
    door.end();
  } catch (error) {
    outgoing.destroy(error as Error);
  }
};

/** Sends a response whose body is there already: with its length. */
export const sendWhole = async (response: Response, outgoing: ServerResponse): Promise<void> => {
  putHeaders(outgoing, response.headers);
  const bytes = response.body && new Uint8Array(await response.arrayBuffer());
  if (bytes) outgoing.setHeader('content-length', bytes.byteLength);
  outgoing.statusMessage = response.statusText;
  outgoing.writeHead(response.status);
  outgoing.end(bytes ?? undefined);
};
