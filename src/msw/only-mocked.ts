import { SamekeyError, type SamekeyErrorOptions } from '../errors.js';
import { isMarked } from './mark.js';

/** A request that was meant for the mock was answered by something else, or could not wait for the mock. */
export class NotMockedError extends SamekeyError<'NOT_MOCKED'> {
  override readonly name: string = 'NotMockedError';
  /** What came instead, its body unread; undefined where nothing was sent. */
  readonly response: Response | undefined;
  constructor(message: string, { response, ...options }: SamekeyErrorOptions & { readonly response?: Response } = {}) {
    super('NOT_MOCKED', message, options);
    this.response = response;
  }
}

export type FetchFunction = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface OnlyMockedOptions {
  /** What makes the requests. @default the platform's fetch, looked up at each request */
  readonly fetch?: FetchFunction | undefined;
  /**
   * What every request waits for before it leaves: `worker.start()`. A function is asked at each request, so that it can
   * give another promise after a restart.
   *
   * @default undefined: nothing
   */
  readonly ready?: PromiseLike<unknown> | (() => unknown) | undefined;
  /** Told of every request that is refused: a client may go on to try again, and say so much later. @default console.error */
  readonly report?: ((error: NotMockedError) => void) | undefined;
}

// oxlint-disable-next-line no-console -- a request that reached a real server must not pass unseen
const reportAloud = (error: NotMockedError): void => console.error(error);

const describeRequest = (input: string | URL | Request, init: RequestInit | undefined): string =>
  input instanceof Request ? `${input.method} ${input.url}` : `${init?.method ?? 'GET'} ${String(input)}`;

const notReady = (request: string, cause: unknown): NotMockedError =>
  new NotMockedError(`${request} was not sent, because what it had to wait for (\`ready\`) failed. Look at the cause: the mock did not start.`, { cause, phase: 'not-sent' });

const notMocked = (request: string, response: Response): NotMockedError => {
  const came = `${request} was answered (status ${response.status}), but not by the mock: the answer carries no Samekey-Mock header. A real server may have executed it.`;
  const next =
    'Give `ready: worker.start()` to onlyMocked, start the worker again after it was stopped or lost this page, wrap the resolver in mock.idempotent, ' +
    'and take onlyMocked off requests that are meant for a real server.';
  return new NotMockedError(`${came} ${next}`, { response, phase: 'answered' });
};

/**
 * A `fetch` for tests that accepts answers of the mock only. Give it to the client: then no request reaches a real server
 * before the worker is ready, and an answer of anybody else is an error instead of a result; the operation stays as it was.
 * Other resolvers than `mock.idempotent`'s are not marked; it may stand around those of reads too.
 *
 * A worker can lose a page that was idle or hidden for minutes. Start it again when the page is seen again, and let
 * requests wait for that:
 *
 * @example
 * let ready = worker.start();
 * const restart = async () => { await worker.stop(); await worker.start(); };
 * document.addEventListener('visibilitychange', () => { if (!document.hidden) ready = ready.then(restart); });
 * const api = createClient({ fetch: onlyMocked({ ready: () => ready }) });
 */
export const onlyMocked = ({ fetch, ready, report = reportAloud }: OnlyMockedOptions = {}): FetchFunction => {
  const refuse = (error: NotMockedError): never => {
    report(error);
    throw error;
  };
  const beReady = async (request: string): Promise<void> => {
    try {
      await (typeof ready === 'function' ? ready() : ready);
    } catch (cause) {
      refuse(notReady(request, cause));
    }
  };
  return async (input, init) => {
    const request = describeRequest(input, init);
    await beReady(request);
    const response = await (fetch ?? globalThis.fetch)(input, init);
    return isMarked(response) ? response : refuse(notMocked(request, response));
  };
};
