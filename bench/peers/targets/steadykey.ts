import type { Request, RequestHandler } from 'express';
import { IdempotencyManager, InMemoryIdempotencyStore } from 'steadykey';
import { createIdempotencyMiddleware } from 'steadykey/middleware';
import { TENANT_HEADER } from '../../../src/testing/conformance.js';
import { openExpress } from '../express.js';
import { peerTarget, type PeerTarget } from '../peer.js';

const LEASE_S = 2;
const TTL_S = 4;

/** Its own type of a request knows less of one than Express does. */
const urlOf = (request: object): string => (request as Request).originalUrl;

const pathOf = (request: object): string => (request as Request).path;

export const steadykey: PeerTarget = peerTarget<InMemoryIdempotencyStore>({
  configured: `createIdempotencyMiddleware on Express; required, ttlSeconds ${TTL_S}, leaseSeconds ${LEASE_S}, inFlight 'fail-fast' ('wait' in case 33), namespace: tenant and endpoint, fingerprint: method, URL and body; InMemoryIdempotencyStore`,
  traits: {
    name: 'steadykey',
    words: { unavailable: [500, 503] },
    abilities: ['time', 'cut off', 'tenants', 'endpoints', 'purge', 'config required', 'config wait'],
    cannot: { announce: 'handlers cannot say when an effect begins', cors: 'leaves CORS to the application' },
    lease: LEASE_S * 1_000,
    retention: TTL_S * 1_000,
  },
  createRecords: () => new InMemoryIdempotencyStore(),
  open(records, scenarios, { required = true, wait }) {
    const manager = new IdempotencyManager(records, { defaultTtlSeconds: TTL_S });
    const middleware = createIdempotencyMiddleware(manager, {
      required,
      ttlSeconds: TTL_S,
      namespace: request => JSON.stringify([request.headers[TENANT_HEADER], pathOf(request).split('/')[1]]),
      fingerprint: request => [request.method, urlOf(request), request.body],
      execute: { leaseSeconds: LEASE_S, ...(wait === undefined ? { inFlight: 'fail-fast' } : { inFlight: 'wait', waitTimeoutMs: wait }) },
    });
    return openExpress(scenarios, { middleware: middleware as unknown as RequestHandler });
  },
  purge: records => records.purgeExpired(),
});
