import { createDedup, type DedupStore, type Effects } from '../../../src/server/index.js';
import { redisDedupStore } from '../../../src/server/stores/redis.js';
import { connectNodeRedis } from './redis.js';

/**
 * A worker that runs one request and stands still at a point of it, to be killed there. It says `at <point>`.
 *
 * Usage: redis-mortal.ts <prefix> <effects> claimed|effect|recording|recorded
 */
const [prefix = '', effects = 'external', point = ''] = process.argv.slice(2);
const client = await connectNodeRedis();

const reach = async (here: string): Promise<void> => {
  if (here !== point) return;
  console.log(`at ${here}`);
  await new Promise<never>(() => {});
};

const store = redisDedupStore(client.connection, { prefix });
const mortal: DedupStore = {
  ...store,
  async settle(hold, settlement) {
    await reach('recording');
    const settled = await store.settle(hold, settlement);
    await reach('recorded');
    return settled;
  },
};

const request = new Request('https://shop.example/charges', {
  method: 'POST', body: '{"amount":4200}', headers: { 'idempotency-key': 'k', 'x-tenant': 'acme', 'content-type': 'application/json' },
});
await createDedup({ store: mortal, scope: () => 'acme', effects: effects as Effects }).handle(
  request,
  async (_request, context) => {
    await reach('claimed');
    await context.effectStarted();
    await client.send('INCR', `${prefix}effects`);
    await reach('effect');
    return Response.json({ paid: true }, { status: 201 });
  },
  { name: 'charge' },
);
