import type { Effects } from './record.js';

/** What a handler knows of its run. Without a key there is no protection: `key` and `scope` are undefined then. */
export interface HandlerContext {
  readonly name: string;
  readonly scope: string | undefined;
  readonly key: string | undefined;
  /** 1 for the first run under the key. */
  readonly attempt: number;
  /** Aborts when the key is lost to another run. A client that goes away does not abort it. */
  readonly signal: AbortSignal;
  /**
   * Await it before an effect that cannot be undone: a failure after it makes the key indeterminate instead of free.
   * Rejects when the effect must not begin.
   */
  effectStarted(): Promise<void>;
}

/** A fetch-style handler. Undefined means that the request is not its business; then nothing is remembered of it. */
export type Handler<T extends Response | undefined = Response | undefined> = (request: Request, context: HandlerContext) => T | Promise<T>;

export interface HandleOptions {
  /** The endpoint's stable name: `charge` for /v1/charges and /v2/charges alike. */
  readonly name: string;
  /** @default the dedup's own */
  readonly effects?: Effects | undefined;
}

const never = new AbortController().signal;

/** What a handler is told when no key protects its run. */
export const unprotected = (name: string): HandlerContext => ({
  name, scope: undefined, key: undefined, attempt: 1, signal: never, effectStarted: async () => {},
});
