import { createClient } from '../../../src/index.js';
import { fileKeyStore } from '../../../src/keystore/file.js';
import type { KeyStore, StoredHead, Write } from '../../../src/keystore/keystore.js';
import type { Errand, Step } from './errand.js';

/**
 * A process that charges orders: node shop.ts <errand as JSON>. It says `at <step> <count>` and stands still there until it
 * is killed or reads a line, then `resumed <count>` and `charged <order> <answer>`.
 */
const { directory, origin, orders, stopAt, resume = false, lease } = JSON.parse(process.argv[2] ?? '') as Errand;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** A line that the test writes lets everybody go on. */
const told = (): Promise<void> => new Promise(resolve => process.stdin.once('data', () => resolve(void process.stdin.unref())));

let standing = 0;
const halt = (step: Step): Promise<void> => {
  say(`at ${step} ${(standing += 1)}`);
  process.stdin.ref();
  return told();
};
const haltAt = (step: Step): Promise<void> | undefined => (step === stopAt ? halt(step) : undefined);

const stepOf = ({ expect, next }: Write): Step | undefined => {
  if (expect === 'absent') return 'before-commit';
  return (next as { state?: string } | undefined)?.state === 'succeeded' ? 'before-settle' : undefined;
};

const halting = (store: KeyStore): KeyStore => ({
  ...store,
  commit: async (writes, durability) => {
    const step = writes.map(stepOf).find(name => name !== undefined);
    if (step) await haltAt(step);
    return store.commit(writes, durability);
  },
});

/** Says when the first part of a body is here; the rest comes when it comes. */
const noticingBody = (response: Response): Response => {
  const noticing = new TransformStream<Uint8Array, Uint8Array>({
    transform: async (chunk, controller) => {
      controller.enqueue(chunk);
      await haltAt('mid-body');
    },
  });
  return new Response(response.body?.pipeThrough(noticing), response);
};

const network = async (request: Request): Promise<Response> => {
  await haltAt('before-send');
  const response = await fetch(request);
  return stopAt === 'mid-body' ? noticingBody(response) : response;
};

let sends = 0;
const authorize = async (): Promise<HeadersInit> => {
  if ((sends += 1) > 1) await haltAt('before-resend');
  return {};
};

const api = createClient({
  prefix: origin,
  scope: 'acct_1',
  keystore: halting(fileKeyStore<StoredHead>(directory)),
  fetch: network,
  // A busy machine is no lost answer: nothing here is resent because of the time it took.
  timeout: 60_000,
  // Short, so that a resend keeps its lease while it waits.
  retry: { delay: () => 100 },
  ...(stopAt === 'before-resend' && { authorize }),
  ...(lease !== undefined && { lease }),
});

const nameOf = (order: string): string => `order:${order}:charge`;

const charge = (order: string): Promise<Response> => api.post('charges', { operation: nameOf(order), json: { order, amount: 4200 } });

/** After a resume pass what is known is asked for, not called again. */
const learn = async (order: string): Promise<Response> =>
  resume && (await api.operations.get(nameOf(order))) ? api.operations.result(nameOf(order)) : charge(order);

await api.operations.get('nothing'); // opens the store
await haltAt('start');
if (resume) say(`resumed ${(await api.operations.resume()).succeeded.length}`);
await Promise.all(orders.map(async order => say(`charged ${order} ${await (await learn(order)).text()}`)));
await api.close();
say('closed');
