import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { customers, type Charge, type Order } from './orders.js';

/**
 * The same shop as most are written: it retries, it sends an Idempotency-Key, it keeps the key on every retry, and it
 * writes down what is paid. Only the key is in memory, so the next process has another one for the same order.
 */
const { PAYMENT_API = '', SHOP_FOLDER = '' } = process.env;

const book = join(SHOP_FOLDER, 'paid.txt');
appendFileSync(book, '');
const paid = new Map(readFileSync(book, 'utf8').split('\n').map(line => line.split(' ') as [order: string, charge: string]));

/** ms between two tries, and ms that one try may take. */
const PAUSE_MS = 200;
const TIMEOUT_MS = 800;

const tryToPay = async (order: Order, key: string): Promise<Charge | undefined> => {
  try {
    const response = await fetch(new URL('charges', PAYMENT_API), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(order),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return response.ok ? await response.json() as Charge : undefined;
  } catch {
    return undefined; // lost on the way, there or back; nobody knows which
  }
};

const pay = async (order: Order): Promise<string> => {
  const known = paid.get(order.id);
  if (known !== undefined) return known;
  const key = randomUUID();
  for (;;) {
    const charge = await tryToPay(order, key);
    if (charge) {
      appendFileSync(book, `${order.id} ${charge.id}\n`);
      return charge.id;
    }
    await sleep(PAUSE_MS);
  }
};

const checkOut = async (orders: readonly Order[]): Promise<void> => {
  for (const order of orders) console.log(order.id, await pay(order));
};

await Promise.all(customers.map(checkOut));
