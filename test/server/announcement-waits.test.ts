import { describe, expect, test, type TestContext } from 'vitest';
import { createDedup, type Dedup, type DedupStore, type HandlerContext } from '../../src/server/index.js';
import { mysqlDedupStore } from '../../src/server/stores/mysql.js';
import { postgresDedupStore } from '../../src/server/stores/postgres.js';
import type { SqlDatabase } from '../../src/sql/index.js';
import { gate } from '../support/gate.js';
import { openOrSkip } from '../support/open-for-all.js';
import { bePatient } from '../support/patience.js';
import { freshMysql } from './support/mysql.js';
import { freshPostgres } from './support/postgres.js';

bePatient();

/** A database, and the store on it, through which a transaction can be held up. */
interface Subject {
  readonly name: string;
  open(): Promise<{ readonly storeOn: (hold: Hold) => DedupStore<unknown>; readonly drop: () => Promise<void> }>;
}

type Hold = <Tx>(database: SqlDatabase<Tx>) => SqlDatabase<Tx>;

const SUBJECTS: readonly Subject[] = [
  {
    name: 'PostgreSQL',
    async open() {
      const { database, drop } = await freshPostgres();
      return { storeOn: hold => postgresDedupStore(hold(database)) as DedupStore<unknown>, drop };
    },
  },
  {
    name: 'MariaDB',
    async open() {
      const { database, drop } = await freshMysql();
      return { storeOn: hold => mysqlDedupStore(hold(database)) as DedupStore<unknown>, drop };
    },
  },
];

const send = (dedup: Dedup, key: string, work: (context: HandlerContext) => Promise<unknown>): Promise<Response> => {
  const request = new Request('https://shop.example/charges', { method: 'POST', headers: { 'idempotency-key': key }, body: '{}' });
  return dedup.handle(request, async (_request, context) => (await work(context), new Response('done')), { name: 'charge' });
};

const dedupOn = (store: DedupStore<unknown>): Dedup => createDedup({ store, scope: () => 'acme' });

describe.each(SUBJECTS)('32: an announcement of an effect elsewhere, $name', ({ open }) => {
  const opened = async (context: TestContext): ReturnType<Subject['open']> => openOrSkip(context, open());

  test('waits for no run of another key, not even for one that is about to commit', async context => {
    const { storeOn, drop } = await opened(context);
    const [written, commit] = [gate(), gate()];
    const slow = dedupOn(storeOn(database => ({
      query: (text, values) => database.query(text, values),
      transaction: (work, options) => database.transaction(async (on, tx) => {
        const result = await work(on, tx);
        written.open();
        await commit.opened;
        return result;
      }, options),
    })));
    const first = send(slow, 'a', async context_ => context_.transaction());
    await written.opened;
    const others = await Promise.all(['0', 'b', 'c'].map(key => send(dedupOn(storeOn(database => database)), key, context_ => context_.effectStarted())));
    commit.open();
    expect([others.map(({ status }) => status), (await first).status]).toEqual([[200, 200, 200], 200]);
    await drop();
  });
});
