import { NoTransactionError, RetryableError } from '../errors.js';
import type { HandleOptions, HandlerContext } from '../handler.js';
import type { Dedup } from '../http.js';

/** What became of a request before its handler. */
export type Entrance<Tx> =
  /** Refused, or answered from the store: the handler is not asked. */
  | { readonly kind: 'answered'; readonly response: Response }
  /** Nothing to protect. The headers say so to the client. */
  | { readonly kind: 'passed'; readonly context: HandlerContext<Tx>; readonly headers: Headers }
  | { readonly kind: 'entered'; readonly run: EnteredRun<Tx> };

/** A run that somebody else's handler does. */
export interface EnteredRun<Tx> {
  readonly context: HandlerContext<Tx>;
  /** How the handler ended: one of them, once. */
  answer(response: Response): void;
  fail(error: unknown): void;
  /** What the client gets, after it is recorded. Rejects as `Dedup.handle` does. */
  readonly outcome: Promise<Response>;
}

/** They change nothing, so that what answers them may keep its own ways: files, upgrades, long streams. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

const again = (): RetryableError =>
  new RetryableError('The transaction was rolled back, and a handler behind middleware cannot be run again for the same request. Nothing was done; the client may repeat it under the same key.');

const noTransaction = (): Promise<never> =>
  Promise.reject(new NoTransactionError('A request that changes nothing goes past the adapter untouched, so no transaction is committed with its answer. Open one on your database.'));

/**
 * Asks the engine whether the handler may run, where the handler is not a function to call but what comes next in a
 * framework: its answer is told to the run when there is one.
 */
export const enter = <Tx>(dedup: Dedup<Tx>, request: Request, options: HandleOptions): Promise<Entrance<Tx>> =>
  new Promise((resolve, reject) => {
    let entered = false;
    let passed: HandlerContext<Tx> | undefined;
    const handler = (_request: Request, context: HandlerContext<Tx>): Response | Promise<Response> => {
      if (entered) throw again();
      if (context.key === undefined && SAFE.has(request.method)) {
        passed = { ...context, transaction: noTransaction };
        return new Response();
      }
      entered = true;
      return new Promise((answer, fail) => {
        // The engine calls before `handle` has returned where nothing has to be read or asked.
        queueMicrotask(() => resolve({ kind: 'entered', run: { context, answer, fail, outcome } }));
      });
    };
    const outcome = dedup.handle(request, handler, options);
    outcome.then(
      response => resolve(passed ? { kind: 'passed', context: passed, headers: response.headers } : { kind: 'answered', response }),
      reject,
    );
  });
