import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLedger, problem, sha256 } from './payment-ledger.js';
import type { Answer, Effect } from './payment-ledger.js';
import { servePage } from './static-pages.js';

/** What goes wrong with one request. `hang`, `slow` and `half-body` end with `release()`. */
export type Fault =
  | { readonly kind: 'none' }
  /** Lost before it was executed. */
  | { readonly kind: 'lose-request' }
  /** Executed, then the connection breaks. */
  | { readonly kind: 'lose-response' }
  /** Executed, never answered. */
  | { readonly kind: 'hang' }
  /** Claimed but not yet executed; whoever comes meanwhile gets 409. Answered when it is done. */
  | { readonly kind: 'slow' }
  /** Executed, answered late. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Executed, then the connection breaks in the middle of the answer. */
  | { readonly kind: 'cut-body' }
  /** Executed, then the answer stops half way and the connection stays open. */
  | { readonly kind: 'half-body' }
  /** Not executed, answered with a status. */
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string };

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  /** SHA-256 of the exact bytes. */
  readonly bytes: string;
  readonly fault: Fault['kind'];
}

export interface PaymentServer {
  readonly origin: string;
  readonly requests: readonly RecordedRequest[];
  readonly effects: readonly Effect[];
  /** Says what goes wrong with the next charges, one fault per request; all after that are well. */
  script(...faults: readonly Fault[]): void;
  /** Resolves when this many charges have arrived in all. */
  arrived(count: number): Promise<void>;
  /** Lets everything that hangs or is slow come to its end. */
  release(): void;
  close(): Promise<void>;
}

const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': '*',
  'access-control-allow-headers': 'idempotency-key, content-type, authorization',
  'access-control-expose-headers': 'idempotent-replayed, idempotency-status, retry-after, location',
};

const readBody = async (request: IncomingMessage): Promise<Buffer> => Buffer.concat(await request.toArray() as Buffer[]);

const send = (response: ServerResponse, { status, headers, body }: Answer): void => {
  response.writeHead(status, { ...CORS, ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
};

const sendHalf = (response: ServerResponse, { status, headers, body }: Answer): void => {
  response.writeHead(status, { ...CORS, ...headers, 'content-length': Buffer.byteLength(body) });
  response.write(body.slice(0, body.length / 2), () => response.destroy());
};

const sendHalves = async (response: ServerResponse, { status, headers, body }: Answer, opened: Promise<void>): Promise<void> => {
  response.writeHead(status, { ...CORS, ...headers, 'content-length': Buffer.byteLength(body) });
  response.write(body.slice(0, body.length / 2));
  await opened;
  response.end(body.slice(body.length / 2));
};

/** A gate that everybody waits at until it is opened. */
const createGate = (): { readonly opened: Promise<void>; readonly open: () => void } => {
  let open = (): void => {};
  const opened = new Promise<void>(resolve => (open = resolve));
  return { opened, open };
};

/**
 * A payment API on loopback: `POST /charges` with `{ order, amount }`. It records every request and every effect, and
 * does wrong what it is told to. Child processes use the same control over HTTP: `POST /-/script` (a list of faults),
 * `POST /-/release`, `GET /-/state`.
 *
 * @param pages - a folder that `GET` serves files from, for tests with a browser
 */
export const startPaymentServer = async ({ pages }: { pages?: string } = {}): Promise<PaymentServer> => {
  const ledger = createLedger();
  const requests: RecordedRequest[] = [];
  const faults: Fault[] = [];
  const watchers = new Set<() => void>();
  let gate = createGate();
  let arrivals = 0;

  const release = (): void => {
    gate.open();
    gate = createGate();
  };

  const record = (request: IncomingMessage, body: Buffer, fault: Fault): RecordedRequest => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    return {
      method: request.method ?? '', path: request.url ?? '', key: headers['idempotency-key'], headers,
      body: body.toString('utf8'), bytes: sha256(body), fault: fault.kind,
    };
  };

  const charge = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    const fault = faults.shift() ?? { kind: 'none' };
    const recorded = record(request, body, fault);
    requests.push(recorded);
    const { opened } = gate;
    // Arrived is what stands: a test that kills something then knows what the server knows.
    const announce = (): void => {
      arrivals += 1;
      watchers.forEach(watcher => watcher());
    };
    if (fault.kind === 'lose-request' || fault.kind === 'status') {
      announce();
      if (fault.kind === 'lose-request') return void response.destroy();
      return send(response, { status: fault.status, headers: fault.headers ?? {}, body: fault.body ?? '' });
    }
    const answering = ledger.charge(recorded.key, body, fault.kind === 'slow' ? () => opened : undefined);
    if (fault.kind === 'slow') announce();
    const answer = await answering;
    if (fault.kind !== 'slow') announce();
    if (fault.kind === 'lose-response') return void response.destroy();
    if (fault.kind === 'cut-body') return sendHalf(response, answer);
    if (fault.kind === 'half-body') return sendHalves(response, answer, opened);
    if (fault.kind === 'hang') await opened;
    if (fault.kind === 'delay') await new Promise(resolve => setTimeout(resolve, fault.ms));
    send(response, answer);
  };

  const control = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url === '/-/script') faults.push(...JSON.parse((await readBody(request)).toString()) as Fault[]);
    if (request.url === '/-/release') release();
    send(response, { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ requests, effects: ledger.effects }) });
  };

  const route = (request: IncomingMessage, response: ServerResponse): Promise<void> | void => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (request.method === 'OPTIONS') return void response.writeHead(204, CORS).end();
    if (pathname.startsWith('/-/')) return control(request, response);
    if (request.method === 'POST' && pathname === '/charges') return charge(request, response);
    if (request.method === 'GET' && pages !== undefined) return servePage(pages, pathname, response);
    return send(response, problem(404, 'not_found', `Nothing at ${request.method} ${pathname}`));
  };

  const server = createServer((request, response) => {
    Promise.resolve(route(request, response)).catch((error: unknown) => send(response, problem(400, 'bad_request', String(error))));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));

  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    effects: ledger.effects,
    script: (...next) => void faults.push(...next),
    arrived: count =>
      new Promise(resolve => {
        const check = (): void => {
          if (arrivals < count) return;
          watchers.delete(check);
          resolve();
        };
        watchers.add(check);
        check();
      }),
    release,
    async close() {
      release();
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
};
