import { createHash } from 'node:crypto';
import type pg from 'pg';
import { createDedup, type Handler } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { postgresDedupStore } from '../../src/server/stores/postgres.js';
import { fromPg } from '../../src/sql/pg.js';

/** Serves one request. */
export type Serve = (request: Request) => Promise<Response>;

export const ANSWER = { id: 'ch_1', amount: 4200, status: 'succeeded' };
export const EFFECT = 'INSERT INTO charges (key) VALUES ($1)';
const ANSWER_HEADERS = JSON.stringify([['content-type', 'application/json']]);

export const keyOf = (request: Request): string => request.headers.get('idempotency-key') ?? '';

const answer = (): Response => Response.json(ANSWER, { status: 201 });

/** What no library can do without: the bytes of the request and their hash. */
const hashOf = async (request: Request): Promise<string> => createHash('sha256').update(new Uint8Array(await request.arrayBuffer())).digest('hex');

const stored = async (response: Response): Promise<[Response, Uint8Array]> => [response, new Uint8Array(await response.clone().arrayBuffer())];

export const bareMemory = (): Serve => {
  const table = new Map<string, { hash: string; answer?: [number, Uint8Array] }>();
  return async request => {
    const row = { hash: await hashOf(request) };
    table.set(keyOf(request), row);
    const [response, body] = await stored(answer());
    Object.assign(row, { answer: [response.status, body] });
    return response;
  };
};

export const ourMemory = (): Serve => {
  const dedup = createDedup({ store: memoryDedupStore(), scope: () => 'bench' });
  return request => dedup.handle(request, answer, { name: 'charge' });
};

const CLAIM = `INSERT INTO bare_keys (scope, id_key, request_hash, status, expires_at, lease_until)
  VALUES ('bench', $1, $2, 'in_progress', now() + interval '1 day', now() + interval '30 s') ON CONFLICT DO NOTHING`;
const COMPLETE = `UPDATE bare_keys SET status = 'completed', response_code = $2, response_headers = $3, response_body = $4, expires_at = now() + interval '1 day'
  WHERE scope = 'bench' AND id_key = $1 AND status = 'in_progress'`;
const LOCK = "SELECT status, request_hash FROM bare_keys WHERE scope = 'bench' AND id_key = $1 FOR UPDATE SKIP LOCKED";

const complete = async (on: pg.Pool | pg.PoolClient, key: string): Promise<Response> => {
  const [response, body] = await stored(answer());
  await on.query(COMPLETE, [key, response.status, ANSWER_HEADERS, body]);
  return response;
};

const inTransaction = async <T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> => {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } finally {
    client.release();
  }
};

/** The statements that a mode cannot do without, written by hand, for requests of which each is the first of its key. */
export const BARE: Readonly<Record<'tx' | 'single-tx' | 'lease', (pool: pg.Pool) => Serve>> = {
  tx: pool => async request => {
    const key = keyOf(request);
    await pool.query(CLAIM, [key, await hashOf(request)]);
    return inTransaction(pool, async client => {
      await client.query(LOCK, [key]);
      await client.query(EFFECT, [key]);
      return complete(client, key);
    });
  },
  'single-tx': pool => async request => {
    const key = keyOf(request);
    const hash = await hashOf(request);
    return inTransaction(pool, async client => {
      await client.query(CLAIM, [key, hash]);
      await client.query(EFFECT, [key]);
      return complete(client, key);
    });
  },
  lease: pool => async request => {
    const key = keyOf(request);
    await pool.query(CLAIM, [key, await hashOf(request)]);
    await pool.query(EFFECT, [key]);
    return complete(pool, key);
  },
};

/** The same effect through samekey. In lease mode it is a statement of its own, as it is for effects elsewhere. */
export const ourPostgres = (pool: pg.Pool, mode: 'tx' | 'single-tx' | 'lease', prepare = false): Serve => {
  const dedup = createDedup({ store: postgresDedupStore(fromPg(pool, { prepare }), { mode }), scope: () => 'bench' });
  const charge: Handler<Response, pg.PoolClient> = async (_request, context) => {
    const on = mode === 'lease' ? pool : await context.transaction();
    await on.query(EFFECT, [context.key]);
    return answer();
  };
  return request => dedup.handle(request, charge, { name: 'charge' });
};
