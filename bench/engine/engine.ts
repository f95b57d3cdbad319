import { Pool } from 'pg';
import { migrate } from '../../src/server/migrate.js';
import { fromPg } from '../../src/sql/pg.js';
import { createPostgresDatabase } from '../../test/support/sql-servers.js';
import { nodeIdempotencyMemory, powertoolsMemory, steadykeyMemory, steadykeyPostgres } from './peers.js';
import { BARE, bareMemory, ourMemory, ourPostgres, type Serve } from './subjects.js';

/** Requests per second of whole requests, each with a key of its own, over the same work written by hand. */
const GOAL = 0.9;
const ROUNDS = 9;
const ROUND_MS = 700;
const WARM_UP_MS = 1_500;
/** Enough to keep two cores and a database busy, few enough for the pool. */
const CONCURRENCY = 8;

/** So many rows are in the table when the cost of a full one is compared with that of an empty one. */
const STORED = Number(process.env['SAMEKEY_STORED'] ?? 1_000_000);

let made = 0;

const request = (): Request =>
  new Request('https://shop.example/charges', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': `key-${process.pid}-${(made += 1)}` },
    body: JSON.stringify({ amount: 4200, currency: 'eur', order: made }),
  });

/** Requests per second. */
const rate = async (serve: Serve, ms: number): Promise<number> => {
  const started = performance.now();
  let served = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - started < ms) {
      const response = await serve(request());
      await response.arrayBuffer();
      if (response.status !== 201) throw new Error(`A request was answered with ${response.status}; the figures would mean nothing.`);
      served += 1;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return (served / (performance.now() - started)) * 1000;
};

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Interleaved, so that drift of the machine meets all alike; ratios are taken within a round. */
const compare = async (title: string, subjects: Readonly<Record<string, Serve>>, goal?: number): Promise<void> => {
  const entries = Object.entries(subjects);
  for (const [, serve] of entries) await rate(serve, WARM_UP_MS);
  const rounds: number[][] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const figures: number[] = [];
    for (const [, serve] of entries) figures.push(await rate(serve, ROUND_MS));
    rounds.push(figures);
  }
  console.log(`\n${title}`);
  entries.forEach(([name], at) => {
    const perSecond = median(rounds.map(figures => figures[at] ?? Number.NaN)).toFixed(0);
    const ratio = median(rounds.map(figures => (figures[at] ?? Number.NaN) / (figures[0] ?? Number.NaN)));
    const verdict = goal !== undefined && (name.startsWith('samekey') || name === 'a full table') ? `   goal ${goal} ${ratio >= goal ? 'met' : 'MISSED'}` : '';
    console.log(`  ${name.padEnd(38)} ${perSecond.padStart(6)}/s${at === 0 ? '' : `   ${ratio.toFixed(2)}`}${verdict}`);
  });
};

const BARE_TABLE = `CREATE TABLE bare_keys (scope text, id_key text, request_hash text, status text, response_code int, response_headers text, response_body bytea,
  expires_at timestamptz, lease_until timestamptz, PRIMARY KEY (scope, id_key)); CREATE INDEX ON bare_keys (expires_at)`;

const FILL = `INSERT INTO idempotency_keys (scope, id_key, request_hash, status, response_code, response_headers, response_body, owner, fence, attempts,
    lease_until, effect_started, operation_ref, created_at, settled_at, result_expires_at, expires_at, revision)
  SELECT '5:bench6:charge', 'stored-' || n, 'v1:sha256:00', 'completed', 201, '[]', '{}', 'o', 1, 1, now(), false, 'r', now(), now(),
    now() + interval '1 day', now() + interval '1 day', 2 FROM generate_series(1, $1::int) n`;

const prepare = async (): Promise<{ pool: Pool; drop: () => Promise<void> }> => {
  const { drop, ...place } = await createPostgresDatabase();
  const pool = new Pool({ ...place, max: 2 * CONCURRENCY });
  // A connection that is idle while its database is dropped.
  pool.on('error', () => {});
  await pool.query('CREATE TABLE charges (id bigserial PRIMARY KEY, key text)');
  await pool.query(BARE_TABLE);
  await migrate(fromPg(pool), 'postgres');
  return {
    pool,
    drop: async () => {
      await pool.end();
      await drop();
    },
  };
};

const comparePostgres = async (pool: Pool): Promise<void> => {
  for (const mode of ['tx', 'single-tx', 'lease'] as const) {
    const peers = mode === 'lease' ? { 'steadykey (PostgresIdempotencyStore)': steadykeyPostgres(pool) } : {};
    const ours = { samekey: ourPostgres(pool, mode), 'samekey, statements prepared': ourPostgres(pool, mode, true) };
    await compare(`PostgreSQL, ${mode}: whole requests, ${CONCURRENCY} at a time`, { 'the same statements by hand': BARE[mode](pool), ...ours, ...peers }, GOAL);
  }
};

/** Two databases side by side, one empty and one full. */
const compareFull = async (): Promise<void> => {
  const [empty, full] = [await prepare(), await prepare()];
  await full.pool.query(FILL, [STORED]);
  await full.pool.query('ANALYZE idempotency_keys');
  for (const mode of ['tx', 'lease'] as const) {
    const title = `PostgreSQL, ${mode}: ${STORED.toLocaleString('en')} stored keys against none`;
    await compare(title, { 'an empty table': ourPostgres(empty.pool, mode), 'a full table': ourPostgres(full.pool, mode) }, GOAL);
  }
  await Promise.all([empty.drop(), full.drop()]);
};

await compare(`memory: whole requests, ${CONCURRENCY} at a time`, {
  'a Map by hand': bareMemory(),
  samekey: ourMemory(),
  steadykey: steadykeyMemory(),
  '@node-idempotency/core': nodeIdempotencyMemory(),
  'Powertools, a layer in memory': powertoolsMemory(),
});
const { pool, drop } = await prepare();
await comparePostgres(pool);
await drop();
await compareFull();
