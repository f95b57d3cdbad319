import { Idempotency, IdempotencyError, IdempotencyErrorCodes, type IdempotencyParams } from '@node-idempotency/core';
import { MemoryStorageAdapter } from '@node-idempotency/storage-adapter-memory';
import type { Request, RequestHandler, Response } from 'express';
import { openExpress } from '../express.js';
import { peerTarget, type PeerTarget } from '../peer.js';

const TTL_MS = 4_000;

const STATUSES: Readonly<Record<IdempotencyErrorCodes, number>> = {
  [IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
  [IdempotencyErrorCodes.IDEMPOTENCY_KEY_LEN_EXEEDED]: 400,
  [IdempotencyErrorCodes.IDEMPOTENCY_KEY_MISSING]: 400,
  [IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: 409,
};

const paramsOf = ({ method, headers, body, originalUrl }: Request): IdempotencyParams =>
  ({ method, headers, body: body as Record<string, unknown>, path: originalUrl });

/** `onResponse` is called with what the route gives to `send`. */
const watch = (idempotency: Idempotency, params: IdempotencyParams, response: Response): void => {
  const send = response.send.bind(response);
  response.send = (body?: unknown) => {
    const additional = { status: response.statusCode, contentType: response.get('content-type') };
    idempotency.onResponse(params, { body, additional }).catch(() => {});
    return send(body);
  };
};

const replay = (response: Response, stored: NonNullable<Awaited<ReturnType<Idempotency['onRequest']>>>): void => {
  const { status, contentType } = stored.additional as { status: number; contentType?: string };
  if (contentType !== undefined) response.set('content-type', contentType);
  response.status(status).set('Idempotent-Replayed', 'true').send(stored.body);
};

const protect = (idempotency: Idempotency): RequestHandler => async (request, response, next) => {
  const params = paramsOf(request);
  try {
    const stored = await idempotency.onRequest(params);
    if (stored) return replay(response, stored);
    watch(idempotency, params, response);
    next();
  } catch (error) {
    if (error instanceof IdempotencyError) response.status(STATUSES[error.code]);
    if (error instanceof IdempotencyError && error.code === IdempotencyErrorCodes.REQUEST_IN_PROGRESS) response.set('Retry-After', '1');
    next(error);
  }
  return undefined;
};

export const nodeIdempotency: PeerTarget = peerTarget<MemoryStorageAdapter>({
  configured: `onRequest and onResponse on Express, with the status codes, the Retry-After and the replay marker of its own Express plugin; enforceIdempotency, cacheTTLMS ${TTL_MS} (which is the lease too), keyMaxLength 255, inProgressStrategy.wait in case 33; MemoryStorageAdapter`,
  traits: {
    name: '@node-idempotency/core',
    words: { unavailable: [500, 503] },
    abilities: ['time', 'cut off', 'endpoints', 'config required', 'config wait'],
    cannot: { tenants: 'has no option for whose key it is', announce: 'handlers cannot say when an effect begins', cors: 'leaves CORS to the application' },
    lease: TTL_MS,
    retention: TTL_MS,
  },
  createRecords: () => new MemoryStorageAdapter(),
  open(records, scenarios, { required = true, wait }) {
    const idempotency = new Idempotency(records, {
      enforceIdempotency: required,
      cacheTTLMS: TTL_MS,
      keyMaxLength: 255,
      ...(wait !== undefined && { inProgressStrategy: { wait: true, pollingIntervalMs: 20, maxWaitMs: wait } }),
    });
    return openExpress(scenarios, { middleware: protect(idempotency) });
  },
});
