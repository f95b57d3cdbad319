import type { Answer, AnswerMeta, HeaderList } from './operation.js';

/** Statuses whose Response must not have a body, not even an empty one. */
const BODYLESS: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** What a Response may have as its status text; the wire allows more (UTF-8, say), and nobody decides by it. */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** An answer as it came over the wire. */
export interface ReceivedAnswer extends Answer {
  /** All headers, Set-Cookie too, for the caller who waits; only `meta.headers` are stored. */
  readonly headers: Headers;
  /** The body came to its end without an error. */
  readonly complete: boolean;
  /** The parsed body; undefined when it is not JSON, empty, or does not parse. */
  readonly json: unknown;
  /** It says it is JSON, and is not. */
  readonly garbled: boolean;
}

const parse = (body: ArrayBuffer): { json: unknown; garbled: boolean } => {
  try {
    return { json: JSON.parse(new TextDecoder().decode(body)), garbled: false };
  } catch {
    return { json: undefined, garbled: true };
  }
};

/** Reads a response to its end. It does not throw: a body that breaks off is an answer that is not complete. */
export const receive = async (response: Response): Promise<ReceivedAnswer> => {
  const { status, statusText, url, headers } = response;
  const meta: AnswerMeta = { status, statusText, url, headers: [...headers].filter(([name]) => name !== 'set-cookie') };
  try {
    const bytes = await response.arrayBuffer();
    const isJson = /^[^;]*[/+]json\b/i.test(headers.get('content-type') ?? '') && bytes.byteLength > 0;
    return { meta, headers, complete: true, body: bytes.byteLength > 0 ? bytes : null, ...(isJson ? parse(bytes) : { json: undefined, garbled: false }) };
  } catch {
    return { meta, headers, complete: false, body: null, json: undefined, garbled: false };
  }
};

/** Whether two answers are the same to the byte. */
export const sameAnswer = (a: Answer | undefined, b: Answer): boolean => {
  if (a?.meta.status !== b.meta.status || a.body?.byteLength !== b.body?.byteLength) return false;
  const left = new Uint8Array(a.body ?? new ArrayBuffer(0));
  const right = new Uint8Array(b.body ?? new ArrayBuffer(0));
  return left.every((byte, at) => byte === right[at]);
};

/** A Response of its own for each caller: unread, with the bytes, headers and URL of the answer. */
export const toResponse = ({ meta, body }: Answer, headers: Headers | HeaderList = meta.headers): Response => {
  const { status, statusText, url } = meta;
  // The constructor refuses statuses that servers do send (999) and that platforms use (0).
  const known = status >= 200 && status <= 599;
  const init: ResponseInit = { status: known ? status : 599, statusText: REASON_PHRASE.test(statusText) ? statusText : '', headers: headers as HeadersInit };
  const response = new Response(BODYLESS.has(status) ? null : body, init);
  // A Response made by hand has no URL, and callers resolve Location against it.
  Object.defineProperty(response, 'url', { value: url });
  if (!known) Object.defineProperty(response, 'status', { value: status });
  return response;
};
