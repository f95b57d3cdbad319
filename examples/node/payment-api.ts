import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDedup } from 'samekey/server';
import { toNodeListener, type FetchHandler } from 'samekey/server/adapters/node';
import { memoryDedupStore } from 'samekey/server/stores/memory';
import { badNetwork } from './bad-network.js';
import type { ApiEvent } from './events.js';
import type { Charge, Order } from './orders.js';
import { faultOf, workOf } from './plan.js';

const seed = Number(process.env['SEED']);
const ignoresKeys = process.env['IGNORE_KEYS'] === 'true';
const tell = (event: ApiEvent): void => void (process.connected && process.send?.(event));

// Copy from here: the server's half of the contract.
const dedup = createDedup({
  store: memoryDedupStore(), // this process is never killed; a store on disk would do the same for one that is
  scope: () => 'shop', // whoever the request was authenticated for
  maxRetryAfter: 1_000, // ms
});

let charges = 0;
const runs = new Map<string, number>();
const charge = async (request: Request): Promise<Response> => {
  const { id: order, amount } = await request.json() as Order;
  const run = (runs.get(order) ?? 0) + 1;
  runs.set(order, run);
  const work = workOf(seed, order, run);
  await sleep(work / 2);
  const made: Charge = { id: `ch_${String(++charges).padStart(3, '0')}`, order, amount };
  tell({ kind: 'charged', order, charge: made.id });
  await sleep(work / 2);
  return Response.json(made, { status: 201 });
};

const charging: FetchHandler = request => dedup.handle(request, charge, { name: 'charge' });
// To here. What follows is the world around it.

const handler = badNetwork({ handler: ignoresKeys ? charge : charging, faultOf: (order, nth) => faultOf(seed, order, nth), tell });
// Broken connections are the plan here, so nobody reports them.
const server = createServer(toNodeListener(handler, { onError: () => {} }));

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

const end = async (): Promise<void> => {
  server.closeAllConnections();
  server.close();
  await dedup.idle();
  process.disconnect();
};
process.once('message', () => void end());
