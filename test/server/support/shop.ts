import { Pool, type ClientBase, type PoolClient, type PoolConfig } from 'pg';
import { createDedup, type Dedup, type DedupOptions, type Handler, type HandlerContext } from '../../../src/server/index.js';
import { postgresDedupStore, type PostgresDedupStoreOptions } from '../../../src/server/stores/postgres.js';
import type { SqlDatabase } from '../../../src/sql/database.js';
import { fromPg } from '../../../src/sql/pg.js';
import type { Place } from '../../support/sql-servers.js';
import { freshPostgres } from './postgres.js';

export type Charge = Handler<Response, PoolClient>;
export type ChargeContext = HandlerContext<PoolClient>;
export type ShopDedup = Dedup<PoolClient>;

/** Where a dedup of the shop gets its connections, where not from the shop's own pool. */
export interface ShopOptions extends Partial<DedupOptions<PoolClient>> {
  readonly pool?: Pool;
  readonly database?: SqlDatabase<PoolClient>;
}

/** A database with the dedup table and one of charges: the effects that must agree with the records. */
export interface Shop {
  readonly place: Place;
  readonly pool: Pool;
  readonly failures: unknown[];
  dedup(store?: PostgresDedupStoreOptions, options?: ShopOptions): ShopDedup;
  /** Another pool on the same database; ended with the shop, if not before. Servers have few connections: take as many as the test needs. */
  connect(config?: PoolConfig): Pool;
  /** Effects, of one key or of all. */
  charges(key?: string): Promise<number>;
  /** State of the record. */
  state(key: string): Promise<string | undefined>;
  pass(ms: number): Promise<void>;
  /** Forgets all charges, records and failures. */
  reset(): Promise<void>;
  /** Backends of this database that are in a transaction or wait for a lock. */
  busyBackends(): Promise<number>;
  close(): Promise<void>;
}

const NAME = { name: 'charge' };

export const send = (dedup: ShopDedup, handler: Charge, key: string, body = '{"amount":4200}'): Promise<Response> => {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' };
  return dedup.handle(new Request('https://shop.example/charges', { method: 'POST', headers, body }), handler, NAME);
};

export const isReplay = (response: Response): boolean => response.headers.get('idempotent-replayed') === 'true';

export const codeOf = async (response: Response): Promise<string> => ((await response.json()) as { code: string }).code;

export const insertCharge = async (on: Pick<ClientBase, 'query'>, { key, attempt }: ChargeContext): Promise<number> =>
  (await on.query<{ id: number }>('INSERT INTO charges (label, attempt) VALUES ($1, $2) RETURNING id', [key, attempt])).rows[0]?.id ?? Number.NaN;

/** The answer tells the id of the row that it stands for. */
export const charged = (id: number): Response => Response.json({ id }, { status: 201 });

/** Charges in the transaction of the answer. */
export const charge: Charge = async (_request, context) => charged(await insertCharge(await context.transaction(), context));

const numberOf = async (pool: Pool, text: string, values: unknown[] = []): Promise<number> => Number((await pool.query<{ n: string }>(text, values)).rows[0]?.n);

export const openShop = async (config: PoolConfig = {}): Promise<Shop> => {
  const { pool, place, pass, clear, drop } = await freshPostgres(config);
  const failures: unknown[] = [];
  const others: Pool[] = [];
  return {
    pool, place, pass, failures,
    dedup: (store, { pool: own = pool, database = fromPg(own), ...options } = {}) =>
      createDedup({ store: postgresDedupStore(database, store), scope: () => 'acme', on: { failed: error => failures.push(error) }, ...options }),
    connect(options = {}) {
      const other = new Pool({ ...place, max: 10, ...options });
      other.on('error', () => {});
      others.push(other);
      return other;
    },
    charges: key => (key === undefined ? numberOf(pool, 'SELECT count(*) AS n FROM charges') : numberOf(pool, 'SELECT count(*) AS n FROM charges WHERE label = $1', [key])),
    state: async key => (await pool.query<{ status: string }>('SELECT status FROM idempotency_keys WHERE id_key = $1', [key])).rows[0]?.status,
    async reset() {
      failures.length = 0;
      await clear();
    },
    busyBackends: () =>
      numberOf(pool, `SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND (state LIKE 'idle in transaction%' OR wait_event_type = 'Lock')`),
    async close() {
      await Promise.all(others.filter(({ ended }) => !ended).map(other => other.end()));
      await drop();
    },
  };
};

/** Whether every connection that a pool can have works, is in no transaction, and is lent to nobody. */
export const isWell = async (pool: Pool): Promise<boolean> => {
  if (pool.totalCount !== pool.idleCount) return false;
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  try {
    const states = await Promise.all(clients.map(client => client.query<{ one: number; inside: boolean }>('SELECT 1 AS one, now() <> statement_timestamp() AS inside')));
    return states.every(({ rows }) => rows[0]?.one === 1 && !rows[0].inside);
  } finally {
    for (const client of clients) client.release();
  }
};
