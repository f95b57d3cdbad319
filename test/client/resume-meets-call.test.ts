import { expect, it } from 'vitest';
import { createClient } from '../../src/client.js';
import { memoryKeyStore } from '../../src/keystore/memory.js';
import { networkError, scripted } from '../support/transport.js';
import { created, failure, ORIGIN } from './setup.js';

const charge = { operation: 'order:42:charge', json: { amount: 4200 } };

it('a resume pass that meets a call of the same operation joins it, and sends nothing of its own', async () => {
  let giveAnswer = (): void => {};
  let sending = (): void => {};
  const answer = new Promise<Response>(resolve => (giveAnswer = () => resolve(created())));
  const sent = new Promise<void>(resolve => (sending = resolve));
  const transport = scripted([networkError(), () => (sending(), answer)]);
  let call: PromiseLike<unknown> | undefined;
  await using api = createClient({
    prefix: ORIGIN, keystore: memoryKeyStore(), scope: 'acct_1', fetch: transport.fetch,
    // The pass has seen that nobody drives the operation; while it asks whose it is, a call begins to.
    owns: async () => {
      if (transport.seen.length === 0 || call) return true;
      call = api.post('charges', charge).json();
      await sent;
      return true;
    },
  });
  await failure(api.post('charges', { ...charge, retry: 0 }));
  const pass = api.operations.resume({ parked: true });
  await sent;
  // Time enough for a pass that would send; a request more is what must not come.
  setTimeout(giveAnswer, 50);
  expect((await pass).succeeded).toMatchObject([{ name: 'order:42:charge', attempts: 2 }]);
  expect(await call).toEqual({ id: 'ch_1' });
  expect(transport.seen).toHaveLength(2);
});

it('a call that joined a resume pass goes on by itself when the pass gives up first', async () => {
  let giveUp = (): void => {};
  let passing = (): void => {};
  const lost = new Promise<Response>((_, reject) => (giveUp = () => reject(networkError())));
  const sent = new Promise<void>(resolve => (passing = resolve));
  const transport = scripted([networkError(), () => (passing(), lost), created()]);
  await using api = createClient({ prefix: ORIGIN, keystore: memoryKeyStore(), scope: 'acct_1', fetch: transport.fetch, retry: { limit: 0, delay: () => 1 } });
  await failure(api.post('charges', charge));
  const pass = api.operations.resume({ parked: true });
  await sent;
  const call = api.post('charges', charge).json();
  giveUp();
  expect((await pass).pending).toHaveLength(1);
  expect(await call).toEqual({ id: 'ch_1' });
  expect(transport.keys).toHaveLength(1);
});
