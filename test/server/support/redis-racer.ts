import { once } from 'node:events';
import { createDedup } from '../../../src/server/index.js';
import { redisDedupStore } from '../../../src/server/stores/redis.js';
import { CLIENTS } from './redis.js';

/**
 * One of several processes that send the same request, `count` times each, to handlers on one Redis. It says `ready`,
 * waits for a line, and then says how often each status was answered.
 *
 * Usage: redis-racer.ts <client> <prefix> <count>
 */
const [name = '', prefix = '', count = '0'] = process.argv.slice(2);
const connect = CLIENTS[name];
if (!connect) throw new Error(`The client is "${name}"; expected one of ${Object.keys(CLIENTS).join(', ')}.`);
const client = await connect();
const dedup = createDedup({ store: redisDedupStore(client.connection, { prefix }), scope: () => 'acme' });

const handler = async (): Promise<Response> => {
  await client.send('INCR', `${prefix}effects`);
  return Response.json({ paid: true }, { status: 201 });
};
const request = (): Request =>
  new Request('https://shop.example/charges', { method: 'POST', body: '{"amount":4200}', headers: { 'idempotency-key': 'k', 'content-type': 'application/json' } });

console.log('ready');
await once(process.stdin, 'data');
const responses = await Promise.all(Array.from({ length: Number(count) }, () => dedup.handle(request(), handler, { name: 'charge' })));
const statuses: Record<string, number> = {};
for (const { status } of responses) statuses[status] = (statuses[status] ?? 0) + 1;
console.log(`statuses ${JSON.stringify(statuses)}`);
await client.close();
process.exit();
