import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createDedup, type Dedup, type Handler } from '../../src/server/index.js';
import { mysqlDedupStore, type MysqlDedupStoreOptions } from '../../src/server/stores/mysql.js';
import { fromMysql2, type SqlDatabase, type SqlExecutor } from '../../src/sql/index.js';
import { openForAll } from '../support/open-for-all.js';
import { bePatient } from '../support/patience.js';
import { gate, isReplay, requestOf } from './support/endpoint.js';
import { crowd } from './support/crowd.js';
import { freshMysql, type MysqlDatabase } from './support/mysql.js';

bePatient();

type Charge = Handler<Response, PoolConnection>;

const CONNECTIONS = 10;

let db: MysqlDatabase;
openForAll(async () => {
  db = await freshMysql();
  return db.drop;
});
beforeEach(() => db.clear());

interface Server {
  readonly pool: Pool;
  readonly dedup: Dedup<PoolConnection>;
}

interface ServerOptions extends MysqlDedupStoreOptions {
  /** Statements for each new connection. */
  readonly session?: string;
  readonly through?: (database: SqlDatabase<PoolConnection>) => SqlDatabase<PoolConnection>;
}

/** A server with connections of its own. */
const openServer = ({ session, through = database => database, ...options }: ServerOptions): Server => {
  const pool = createPool({ ...db.place, connectionLimit: CONNECTIONS });
  if (session !== undefined) pool.on('connection', connection => connection.query(session));
  onTestFinished(() => pool.end());
  return { pool, dedup: createDedup({ store: mysqlDedupStore(through(fromMysql2(pool)), options), scope: () => 'acme', on: { failed: () => {} } }) };
};

const charge: Charge = async (_request, context) => {
  const tx = await context.transaction();
  await tx.query('INSERT INTO charges (label, attempt) VALUES (?, ?)', [context.key, context.attempt]);
  return Response.json({ charged: true }, { status: 201 });
};

/** Whether every connection of a pool answers, and has no transaction open. */
const allAreWell = async (pool: Pool): Promise<boolean> => {
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.getConnection()));
  const answers = await Promise.all(connections.map(async connection => (await connection.query<never[]>('SELECT @@in_transaction AS busy'))[0][0] as unknown as { busy: number }));
  for (const connection of connections) connection.release();
  return answers.every(({ busy }) => busy === 0);
};

const expectOneRun = async (servers: readonly Server[], count: number): Promise<void> => {
  const { runs, most, told } = await crowd(servers.map(({ dedup }) => dedup), count, charge);
  const { executed = 0, replayed = 0, 409: conflicts = 0, ...others } = told;
  expect({ runs, most, executed, others, all: executed + replayed + conflicts }).toEqual({ runs: 1, most: 1, executed: 1, others: {}, all: count });
  expect([await db.count('charges'), await Promise.all(servers.map(({ pool }) => allAreWell(pool)))]).toEqual([1, servers.map(() => true)]);
};

describe.each(['tx', 'lease'] as const)('many identical requests at once, %s', mode => {
  test.each([50, 200])('28, C75: of %i exactly one runs, the others hear 409 or get its answer, and every connection is well afterwards', count =>
    expectOneRun([openServer({ mode })], count));

  test('C92: 32 over four servers with connections of their own are one run', () => expectOneRun(Array.from({ length: 4 }, () => openServer({ mode })), 32));

  test('28: none of them waits for the one that runs', async () => {
    const { dedup } = openServer({ mode });
    const { opened, open } = gate();
    let heard = 0;
    const send = async (): Promise<void> => {
      const { status } = await dedup.handle(requestOf({ key: 'k' }), async (request, context) => (await opened, charge(request, context)), { name: 'charge' });
      // The run itself is answered when the last of the others has been.
      if (status === 409 && (heard += 1) === 49) open();
    };
    await Promise.all(Array.from({ length: 50 }, send));
    expect([heard, await db.count('charges')]).toEqual([49, 1]);
  });

  test('32: 50 other keys do not wait for one whose handler goes on', async () => {
    const { dedup } = openServer({ mode });
    const [entered, end] = [gate(), gate()];
    const slow = dedup.handle(requestOf({ key: 'slow' }), async (request, context) => {
      const answer = await charge(request, context);
      entered.open();
      await end.opened;
      return answer;
    }, { name: 'charge' });
    await entered.opened;
    const others = await Promise.all(Array.from({ length: 50 }, (_, at) => dedup.handle(requestOf({ key: `k${at}` }), charge, { name: 'charge' })));
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([201]));
    end.open();
    expect([(await slow).status, await db.count('charges')]).toEqual([201, 51]);
  });
});

describe.each(['read committed', 'repeatable read', 'serializable'] as const)('handlers in %s transactions', isolation => {
  test('C74: of 50 identical requests exactly one runs', () => expectOneRun([openServer({ isolation })], 50));

  test('C74: nor do more where a snapshot that is too old is an error', () => expectOneRun([openServer({ isolation, session: 'SET SESSION innodb_snapshot_isolation = ON' })], 50));
});

/** MySQL reads what is for MariaDB only as a comment. */
const asMysqlReads = (database: SqlDatabase<PoolConnection>): SqlDatabase<PoolConnection> => {
  const on = (sql: SqlExecutor): SqlExecutor => ({ query: (text, values) => sql.query(text.replace(/\/\*M!.*?\*\//s, ''), values) });
  return { ...on(database), transaction: (work, options) => database.transaction((sql, tx) => work(on(sql), tx), options) };
};

describe('on a server that cannot insert without waiting', () => {
  test.each([50, 200])('28: of %i identical requests exactly one runs', count => expectOneRun([openServer({ through: asMysqlReads })], count));

  test('29: a duplicate that finds the key in use hears 409 at once', async () => {
    const { dedup } = openServer({ through: asMysqlReads });
    const [entered, end] = [gate(), gate()];
    const first = dedup.handle(requestOf({ key: 'k' }), async (request, context) => {
      entered.open();
      await end.opened;
      return charge(request, context);
    }, { name: 'charge' });
    await entered.opened;
    expect((await dedup.handle(requestOf({ key: 'k' }), charge, { name: 'charge' })).status).toBe(409);
    end.open();
    await first;
    expect(isReplay(await dedup.handle(requestOf({ key: 'k' }), charge, { name: 'charge' }))).toBe(true);
  });
});
