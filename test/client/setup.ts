import { createClient } from '../../src/client.js';
import { memoryBacking, memoryKeyStore, type MemoryBacking } from '../../src/keystore/memory.js';
import type { Client } from '../../src/client.js';
import type { ClientOptions } from '../../src/options.js';
import { scripted, type Step, type Transport } from '../support/transport.js';
import { virtualClock, type VirtualClock } from '../support/virtual-clock.js';

export const ORIGIN = 'https://api.test';

export interface Bench {
  readonly api: Client;
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly backing: MemoryBacking;
}

export interface BenchOptions extends Omit<ClientOptions, 'clock'> {
  readonly backing?: MemoryBacking;
  readonly clock?: VirtualClock;
}

/** A client on a virtual clock, a scripted transport and a memory store that other clients may share. */
export const bench = (steps: readonly Step[], options: BenchOptions = {}): Bench => {
  const { backing = memoryBacking(), clock = virtualClock(), ...rest } = options;
  const transport = scripted(steps, () => clock.now());
  const api = createClient({
    prefix: ORIGIN, keystore: memoryKeyStore({ backing }), scope: 'acct_1', keyStrategy: 'derived', random: () => 0.5, clock, fetch: transport.fetch, ...rest,
  });
  return { api, clock, transport, backing };
};

export const created = (id = 'ch_1'): Response => Response.json({ id }, { status: 201 });

/** The error that a promise rejects with; a promise that resolves fails the test. */
export const failure = async (promise: PromiseLike<unknown>): Promise<Error & Record<string, unknown>> => {
  try {
    await promise;
  } catch (error) {
    return error as Error & Record<string, unknown>;
  }
  throw new Error('It should have failed, and did not');
};
