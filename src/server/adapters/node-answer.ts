import type { ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { headersSince, type HeaderValues } from './node-headers.js';

/** What a handler makes of a response by writing to it. */
export interface WrittenAnswer {
  /** Settles with the first byte, or with the end where that comes first. Rejects when the response is given up before. */
  readonly answer: Promise<Response>;
  /** Whether the handler has written anything, or has ended. */
  readonly isStarted: boolean;
  readonly isEnded: boolean;
  /** To lay over the response until its writer has ended: takes what is written. */
  readonly writing: PropertyDescriptorMap;
  /** To lay over the response until the answer goes out: the response looks as far advanced as its writer has come. */
  readonly looks: PropertyDescriptorMap;
  /** Gives the answer up: what there is of it breaks off. */
  abandon(error: Error): void;
}

interface Writing {
  readonly outgoing: ServerResponse;
  readonly before: HeaderValues;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: Error) => void;
  /** Called when all that was written is taken over: then the writer's 'finish' is due. */
  readonly finished: () => void;
  body: PassThrough | undefined;
  hasHead: boolean;
  isStarted: boolean;
  isEnded: boolean;
  isOver: boolean;
}

type Callback = (error?: Error | null) => void;

interface Written {
  readonly chunk: string | Uint8Array | undefined;
  readonly encoding: BufferEncoding;
  readonly callback: Callback | undefined;
}

/** Statuses that have no body, whatever is written. */
const NULL_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

const HEADER_METHODS = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'] as const;

const coded = (code: string, message: string): Error => Object.assign(new Error(message), { code });

/** In Node's words and with its code, because error handlers ask for it. */
const headersSent = (): Error => coded('ERR_HTTP_HEADERS_SENT', 'Cannot set headers after they are sent to the client.');
const noChunk = (chunk: unknown): Error => Object.assign(new TypeError(`A body can be written as text or bytes; a value of type ${typeof chunk} came.`), { code: 'ERR_INVALID_ARG_TYPE' });
const afterEnd = (): Error => coded('ERR_STREAM_WRITE_AFTER_END', 'Cannot write after the response has ended.');

/** Chunk, encoding and callback may each be left out, or be null. */
const writtenBy = (args: readonly unknown[]): Written => {
  const [chunk, encoding] = args.map(one => (typeof one === 'function' ? undefined : (one ?? undefined)));
  return {
    chunk: chunk as Written['chunk'],
    encoding: (encoding ?? 'utf8') as BufferEncoding,
    callback: args.find(one => typeof one === 'function') as Callback | undefined,
  };
};

/** The headers that `writeHead` takes: those in a flat list replace what was there, but may repeat among themselves. */
const setAll = (outgoing: ServerResponse, headers: unknown): void => {
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers ?? {})) outgoing.setHeader(name, value as string);
    return;
  }
  const pairs = headers.flatMap((name: unknown, at) => (at % 2 === 0 ? [[String(name), headers[at + 1] as string] as const] : []));
  for (const [name] of pairs) outgoing.removeHeader(name);
  for (const [name, value] of pairs) outgoing.appendHeader(name, value);
};

/** What the handler has said so far, and what it will write. */
const responseOf = ({ outgoing, before }: Writing, body: Uint8Array<ArrayBuffer> | PassThrough): Response => {
  const { statusCode: status, statusMessage } = outgoing;
  const headers = headersSince(before, outgoing.getHeaders());
  const init = { status, statusText: statusMessage ?? '', headers };
  if (NULL_BODY.has(status)) {
    if (body instanceof PassThrough) body.resume();
    return new Response(null, init);
  }
  if (body instanceof PassThrough) return new Response(Readable.toWeb(body) as ReadableStream<Uint8Array>, init);
  // As node:http does when the first write is the last one.
  if (!outgoing.hasHeader('content-length') && !outgoing.hasHeader('transfer-encoding')) headers.set('content-length', String(body.byteLength));
  return new Response(body, init);
};

const writeHead = (writing: Writing, status: number, rest: readonly unknown[]): ServerResponse => {
  const { outgoing, hasHead } = writing;
  if (hasHead) throw headersSent();
  const [reason, headers] = typeof rest[0] === 'string' ? rest : [undefined, rest[0] ?? rest[1]];
  setAll(outgoing, headers);
  outgoing.statusCode = status;
  if (typeof reason === 'string') outgoing.statusMessage = reason;
  writing.hasHead = true;
  return outgoing;
};

const insistOnHead = ({ outgoing, hasHead }: Writing): void => {
  // By its name, so that hooks on the head (`on-headers`) are asked.
  if (!hasHead) outgoing.writeHead(outgoing.statusCode);
};

/** From here on the answer is a stream. */
const stream = (writing: Writing): PassThrough => {
  if (writing.body) return writing.body;
  insistOnHead(writing);
  const body = new PassThrough();
  // Its reader hears of it, and the writer by its callback.
  body.on('error', () => {}).on('drain', () => writing.outgoing.emit('drain'));
  writing.resolve(responseOf(writing, body));
  writing.body = body;
  writing.isStarted = true;
  return body;
};

const write = (writing: Writing, { chunk, encoding, callback }: Written): boolean => {
  if (!writing.isEnded) return stream(writing).write(chunk, encoding, callback);
  callback?.(afterEnd());
  return false;
};

const end = (writing: Writing, { chunk, encoding, callback }: Written): ServerResponse => {
  const { outgoing, body, isEnded } = writing;
  if (isEnded) {
    callback?.(afterEnd());
    return outgoing;
  }
  // As Node does; an answer that is another than was meant must not be recorded.
  if (chunk !== undefined && typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) throw noChunk(chunk);
  const over = (): void => {
    writing.isOver = true;
    callback?.();
    writing.finished();
  };
  insistOnHead(writing);
  if (body) body.once('finish', over).end(chunk, encoding);
  else {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : (chunk ?? []);
    writing.resolve(responseOf(writing, new Uint8Array(bytes)));
    queueMicrotask(over);
  }
  writing.isStarted = true;
  writing.isEnded = true;
  return outgoing;
};

/** The methods that set headers, which refuse when the head is written. */
const guardedHeaders = (writing: Writing): PropertyDescriptorMap => {
  const { outgoing } = writing;
  const guarded = HEADER_METHODS.map(name => {
    const method = outgoing[name] as (...args: unknown[]) => unknown;
    const value = (...args: unknown[]): unknown => {
      if (writing.hasHead) throw headersSent();
      return Reflect.apply(method, outgoing, args);
    };
    return [name, { value, writable: true }] as const;
  });
  return Object.fromEntries(guarded);
};

/**
 * Makes a fetch response of what is written to a response of node:http.
 *
 * @param before - its headers when the handler began
 * @param finished - called when all that was written is taken over
 */
export const writtenAnswer = (outgoing: ServerResponse, before: HeaderValues, finished: () => void): WrittenAnswer => {
  let settle!: Pick<Writing, 'resolve' | 'reject'>;
  const answer = new Promise<Response>((resolve, reject) => (settle = { resolve, reject }));
  const writing: Writing = { outgoing, before, finished, ...settle, body: undefined, hasHead: false, isStarted: false, isEnded: false, isOver: false };
  return {
    answer,
    get isStarted() {
      return writing.isStarted;
    },
    get isEnded() {
      return writing.isEnded;
    },
    writing: {
      writeHead: { value: (status: number, ...rest: unknown[]) => writeHead(writing, status, rest), writable: true },
      write: { value: (...args: unknown[]) => write(writing, writtenBy(args)), writable: true },
      end: { value: (...args: unknown[]) => end(writing, writtenBy(args)), writable: true },
      flushHeaders: { value: () => void stream(writing), writable: true },
    },
    looks: {
      ...guardedHeaders(writing),
      headersSent: { get: () => writing.hasHead },
      writableEnded: { get: () => writing.isEnded },
      writableFinished: { get: () => writing.isOver },
      closed: { get: () => writing.isOver },
    },
    abandon(error) {
      settle.reject(error);
      writing.body?.destroy(error);
    },
  };
};
