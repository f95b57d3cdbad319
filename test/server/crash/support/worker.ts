import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeListener } from '../../../../src/server/adapters/node.js';
import { createDedup, type Dedup, type DedupStore, type Handler } from '../../../../src/server/index.js';
import type { SqlDatabase } from '../../../../src/sql/index.js';
import { openCharging, type Charging } from './charging.js';
import { STOP_HEADER, type Endpoint, type Job, type Step } from './job.js';

/**
 * A server process: node worker.ts <job as JSON>. It says `listening <port>`, `entered <key>` whenever a handler begins, and
 * `at <step> <path> <key>` where a request stands still until the process is killed.
 */
const job = JSON.parse(process.argv[2] ?? '') as Job;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const requests = new AsyncLocalStorage<Request>();

const halt = async (step: Step): Promise<void> => {
  const request = requests.getStore();
  if (request?.headers.get(STOP_HEADER) !== step) return undefined;
  say(`at ${step} ${new URL(request.url).pathname} ${request.headers.get('idempotency-key')}`);
  return new Promise(() => {});
};

const haltingDatabase = <Tx>(watched: SqlDatabase<Tx>): SqlDatabase<Tx> => ({
  query: (text, values) => watched.query(text, values),
  transaction: (work, options) =>
    watched.transaction(async (on, tx) => {
      const result = await work(on, tx);
      await halt('before-commit');
      return result;
    }, options),
});

const haltingStore = <Tx>(store: DedupStore<Tx>): DedupStore<Tx> => {
  const { enter, transact } = store;
  return {
    ...store,
    async settle(hold, settlement) {
      await halt('before-record');
      const held = await store.settle(hold, settlement);
      await halt('after-record');
      return held;
    },
    ...(transact && {
      async transact(work) {
        const result = await transact(async (tx, settle) => work(tx, async (hold, settlement) => (await halt('before-record'), settle(hold, settlement))));
        await halt('after-record');
        return result;
      },
    }),
    ...(enter && {
      async enter(claim, work) {
        const entered = await enter(claim, async entry => {
          const ending = await work(entry);
          await halt('before-record');
          return ending;
        });
        await halt('after-record');
        return entered;
      },
    }),
  };
};

const charged = (id: number): Response => Response.json({ id }, { status: 201 });

const within = ({ within: charge }: Charging<unknown>): Handler<Response> => async (_request, context) => {
  say(`entered ${context.key}`);
  await halt('after-claim');
  const id = await charge(context);
  await halt('after-effect');
  return charged(id);
};

const elsewhere = ({ elsewhere: charge }: Charging<unknown>): Handler<Response> => async (_request, context) => {
  say(`entered ${context.key}`);
  await halt('after-claim');
  await context.effectStarted();
  await halt('after-announcement');
  const id = await charge(context);
  await halt('after-effect');
  return charged(id);
};

const charging = openCharging(job, haltingDatabase);
const { tx, lease: leased } = charging.stores;

const dedupOn = (store: DedupStore<unknown>): Dedup => createDedup({ store: haltingStore(store), lease: job.lease, scope: () => 'acme', on: { failed: error => say(`failed ${String(error)}`) } });

const txDedup = tx && dedupOn(tx);
const leaseDedup = dedupOn(leased);

const endpoints: Record<Endpoint, (request: Request) => Promise<Response> | undefined> = {
  tx: request => txDedup?.handle(request, within(charging), { name: 'tx' }),
  'tx-elsewhere': request => txDedup?.handle(request, elsewhere(charging), { name: 'tx-elsewhere' }),
  // A worker that dies takes what it did in the transaction with it, so the next one may begin.
  lease: request => leaseDedup.handle(request, within(charging), { name: 'lease', effects: 'marked' }),
  'lease-elsewhere': request => leaseDedup.handle(request, elsewhere(charging), { name: 'lease-elsewhere' }),
  'lease-marked': request => leaseDedup.handle(request, elsewhere(charging), { name: 'lease-marked', effects: 'marked' }),
};

const serve = async (request: Request): Promise<Response> => (await endpoints[new URL(request.url).pathname.slice(1) as Endpoint]?.(request)) ?? new Response(null, { status: 404 });

// It ends with the test that has started it, whatever becomes of that.
process.stdin.once('end', () => process.exit()).resume();

const server = createServer(toNodeListener(request => requests.run(request, () => serve(request))));
server.listen(0, '127.0.0.1', () => say(`listening ${(server.address() as AddressInfo).port}`));
