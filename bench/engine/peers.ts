import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { Idempotency } from '@node-idempotency/core';
import { MemoryStorageAdapter } from '@node-idempotency/storage-adapter-memory';
import type { Pool } from 'pg';
import { IdempotencyManager, InMemoryIdempotencyStore, PostgresIdempotencyStore } from 'steadykey';
import { memoryTable, MemoryPersistenceLayer } from '../peers/targets/powertools-records.js';
import { ANSWER, EFFECT, keyOf, type Serve } from './subjects.js';

/**
 * The same request through other libraries, at their core and without a framework, each with the key of the caller and a
 * comparison of the body. Each stores the answer as a value, as it does by itself; status and headers are the caller's.
 */

const DAY_S = 86_400;

type Effect = (key: string) => Promise<unknown>;

const nothing: Effect = async () => {};

const created = (value: unknown): Response => Response.json(value, { status: 201 });

const withSteadykey = (manager: IdempotencyManager, effect: Effect): Serve => async request => {
  const key = keyOf(request);
  const payload = JSON.parse(await request.text()) as Record<string, string>;
  const { value } = await manager.execute(payload, async () => {
    await effect(key);
    return ANSWER;
  }, { idempotencyKey: key, ttlSeconds: DAY_S, inFlight: 'fail-fast' });
  return created(value);
};

export const steadykeyMemory = (): Serve => withSteadykey(new IdempotencyManager(new InMemoryIdempotencyStore()), nothing);

export const steadykeyPostgres = (pool: Pool): Serve =>
  withSteadykey(new IdempotencyManager(new PostgresIdempotencyStore(pool)), key => pool.query(EFFECT, [key]));

export const nodeIdempotencyMemory = (): Serve => {
  const idempotency = new Idempotency(new MemoryStorageAdapter(), { cacheTTLMS: DAY_S * 1_000, keyMaxLength: 255 });
  return async request => {
    const params = { method: request.method, path: '/charges', headers: Object.fromEntries(request.headers), body: JSON.parse(await request.text()) as Record<string, unknown> };
    const stored = await idempotency.onRequest(params);
    if (stored) return created(stored.body);
    await idempotency.onResponse(params, { body: ANSWER });
    return created(ANSWER);
  };
};

/** The life of the function, which is the lease of a run, as the platform tells it for each call. */
const LAMBDA = { getRemainingTimeInMillis: () => 30_000 } as Parameters<IdempotencyConfig['registerLambdaContext']>[0];

export const powertoolsMemory = (): Serve => {
  const config = new IdempotencyConfig({ eventKeyJmesPath: 'key', payloadValidationJmesPath: 'body', expiresAfterSeconds: DAY_S });
  config.registerLambdaContext(LAMBDA);
  const persistenceStore = new MemoryPersistenceLayer(memoryTable());
  const run = makeIdempotent(async (_event: { key: string; body: unknown }) => ANSWER, { persistenceStore, config });
  return async request => created(await run({ key: keyOf(request), body: JSON.parse(await request.text()) }));
};
