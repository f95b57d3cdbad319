import { createClient } from 'samekey';
import { fileKeyStore } from 'samekey/keystore/file';
import { customers, type Charge, type Order } from './orders.js';

const { PAYMENT_API = '', SHOP_FOLDER = '' } = process.env;

// Copy from here: where operations are kept, whose they are, and a name for each intent.
const api = createClient({
  prefix: PAYMENT_API,
  keystore: fileKeyStore(SHOP_FOLDER),
  scope: 'shop', // the shop's account at the payment API
  timeout: 800, // ms per attempt; this demo is in a hurry, and so is the next line
  retry: { limit: 20, backoffLimit: 400 },
});
api.operations.start(); // goes on with what the last process left behind

const pay = (order: Order): Promise<Charge> =>
  api.post('charges', { operation: `order:${order.id}:charge`, json: order }).json<Charge>();
// To here. Nothing below knows of kills, retries or keys: a shop that starts again goes through its orders again.

const checkOut = async (orders: readonly Order[]): Promise<void> => {
  for (const order of orders) console.log(order.id, (await pay(order)).id);
};

await Promise.all(customers.map(checkOut));
await api.close();
