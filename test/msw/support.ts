import { afterAll, afterEach, beforeAll } from 'vitest';
import { setupServer, type SetupServer } from 'msw/node';
import type { LedgerEntry } from '../../src/msw/index.js';
import { bePatient } from '../support/patience.js';

export const CHARGES = 'https://api.test/charges';

/** One MSW server per test file; handlers and their state are gone after each test. */
export const useServer = (): SetupServer => {
  bePatient();
  const server = setupServer();
  beforeAll(() => server.listen({ onUnhandledFrame: 'error' }));
  afterEach(() => server.resetHandlers());
  afterAll(() => server.close());
  return server;
};

export interface Charge {
  readonly key?: string;
  readonly body?: BodyInit | null;
  readonly url?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
}

/** What a client sends. */
export const charge = ({ key = 'k', body = '{"amount":4200}', url = CHARGES, signal, headers = {} }: Charge = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key !== '' && { 'idempotency-key': key }), ...headers },
    body,
    ...(signal && { signal }),
  });

/** A network error, as `fetch` shows it; undefined when there was an answer. */
export const networkError = async (sent: Promise<Response>): Promise<TypeError | undefined> => {
  try {
    await sent;
    return undefined;
  } catch (error) {
    return error as TypeError;
  }
};

export const kindsOf = (ledger: readonly LedgerEntry[]): string[] => ledger.map(({ kind }) => kind);
