import type { Effects } from './record.js';

/** What a handler knows of its run. Without a key there is no protection: `key` and `scope` are undefined then. */
export interface HandlerContext<Tx = unknown> {
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
  /**
   * The transaction that records the answer: what is done through it is committed together with the answer, or not at
   * all, and an answer of 400 and more undoes it. In `tx` modes it holds the key from before the handler; in lease mode it
   * opens at the first call and stays open until the handler ends, so ask late. Without a key it is an ordinary one.
   * Rejects with `NoTransactionError` where the store has none.
   */
  transaction(): Promise<Tx>;
}

/** A fetch-style handler. Undefined means that the request is not its business; then nothing is remembered of it. */
export type Handler<T extends Response | undefined = Response | undefined, Tx = unknown> = (request: Request, context: HandlerContext<Tx>) => T | Promise<T>;

export interface HandleOptions {
  /** The endpoint's stable name: `charge` for /v1/charges and /v2/charges alike. */
  readonly name: string;
  /** @default the dedup's own */
  readonly effects?: Effects | undefined;
}

/** What a handler is told when no key protects its run. */
export const unprotected = <Tx>(name: string, transaction: () => Promise<Tx>): HandlerContext<Tx> => ({
  name, scope: undefined, key: undefined, attempt: 1, signal: new AbortController().signal, effectStarted: async () => {}, transaction,
});
