import type { RequestHandler } from 'express';
import type { PoolClient } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { idempotencyOf, idempotentErrors } from '../../../src/server/adapters/express.js';
import { createDedup, type Dedup, type DedupOptions, type DedupStore } from '../../../src/server/index.js';
import { postgresDedupStore } from '../../../src/server/stores/postgres.js';
import { bePatient } from '../../support/patience.js';
import { freshPostgres, type PostgresDatabase } from '../support/postgres.js';
import { charges as expressCharges } from './express/charges.js';
import { charges as fastifyCharges } from './fastify/charges.js';
import { codeOf, gate, post, replayed } from './serving.js';

bePatient();

let db: PostgresDatabase;
beforeAll(async () => {
  db = await freshPostgres();
  // Gives the first commit up, as a serialization failure does. Sequences are not rolled back, so the next one passes.
  await db.pool.query(`
    CREATE TABLE contended (id int);
    CREATE SEQUENCE commits;
    CREATE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF nextval('commits') = 1 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF; RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER contended AFTER INSERT ON contended DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION give_up();
  `);
});
afterEach(() => db.clear());
afterAll(() => db.drop());

interface Endpoint {
  readonly url: string;
  readonly runs: number;
}

interface Answer {
  readonly status: number;
  /** Statements that are done before it. */
  readonly does: readonly string[];
}

type Work = (run: number) => Answer | Promise<Answer>;

const chargedRows = async (): Promise<number> => Number((await db.pool.query('SELECT count(*) FROM charges')).rows[0].count);

const CHARGE = "INSERT INTO charges (label) VALUES ('a')";

/** The same handler in each framework: statements in the transaction of its run, and then an answer. */
const frameworks: Record<string, (work: Work, options: Partial<DedupOptions>) => Promise<Endpoint>> = {
  async Express(work, options) {
    const handler: RequestHandler = async (req, res) => {
      const { status, does } = await work(endpoint.runs);
      const tx = (await req.idempotency?.transaction()) as PoolClient;
      for (const statement of does) await tx.query(statement);
      res.status(status).json({ run: endpoint.runs });
    };
    const endpoint = await expressCharges(handler, { options, after: [idempotentErrors] });
    return endpoint;
  },
  async Fastify(work, options) {
    const endpoint = await fastifyCharges(async (request, reply) => {
      const { status, does } = await work(endpoint.runs);
      const tx = (await idempotencyOf(endpoint.dedup, request).transaction()) as PoolClient;
      for (const statement of does) await tx.query(statement);
      return reply.code(status).send({ run: endpoint.runs });
    }, { options });
    return endpoint;
  },
};

describe.each(Object.entries(frameworks))('the transaction of a run in %s', (_name, serve) => {
  const store = (): DedupStore => postgresDedupStore(db.database, { mode: 'tx' }) as DedupStore;

  it('15: commits effect and answer together, and rolls the effect back with a refusal', async () => {
    const charged = await serve(() => ({ status: 201, does: [CHARGE] }), { store: store() });
    expect([(await post(charged.url)).status, replayed(await post(charged.url)), await chargedRows()]).toEqual([201, true, 1]);
    const refused = await serve(() => ({ status: 402, does: [CHARGE] }), { store: store() });
    expect([(await post(refused.url, { key: 'r' })).status, (await post(refused.url, { key: 'r' })).status, await chargedRows()]).toEqual([402, 402, 1]);
    expect([charged.runs, refused.runs]).toEqual([1, 1]);
  });

  it('8: a duplicate is refused while the transaction is open, and nobody sees an answer before its commit', async () => {
    const { opened, open } = gate();
    const endpoint = await serve(async () => (await opened, { status: 201, does: [CHARGE] }), { store: store() });
    let answered = false;
    const first = post(endpoint.url).finally(() => (answered = true));
    await expect.poll(() => endpoint.runs).toBe(1);
    expect([await codeOf(await post(endpoint.url)), answered, await chargedRows()]).toEqual(['idempotency_in_progress', false, 0]);
    open();
    expect([(await first).status, await chargedRows()]).toEqual([201, 1]);
  });

  it('a commit that the database gives up leaves nothing, and the client repeats it under the same key', async () => {
    await db.pool.query("SELECT setval('commits', 1, false)");
    const endpoint = await serve(() => ({ status: 201, does: [CHARGE, 'INSERT INTO contended VALUES (1)'] }), { store: store() });
    const first = await post(endpoint.url);
    expect([first.status >= 500, await chargedRows(), endpoint.runs]).toEqual([true, 0, 1]);
    expect([(await post(endpoint.url)).status, await chargedRows(), endpoint.runs]).toEqual([201, 1, 2]);
  });

  it('without a key it is an ordinary one', async () => {
    const endpoint = await serve(run => ({ status: run === 1 ? 201 : 402, does: [CHARGE] }), { store: store(), required: false });
    expect([(await post(endpoint.url, { key: '' })).status, (await post(endpoint.url, { key: '' })).status, await chargedRows()]).toEqual([201, 402, 1]);
  });
});

it('its type is that of the store', async () => {
  const dedup: Dedup<PoolClient> = createDedup({ store: postgresDedupStore(db.database), scope: () => 'acme' });
  expect(() => idempotencyOf(dedup, {}).transaction()).toThrow('has not come through');
});
