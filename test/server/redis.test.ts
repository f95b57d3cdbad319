import { describe, it } from 'vitest';
import { redisDedupStore, type RedisDedupStore, type RedisDedupStoreOptions } from '../../src/server/stores/redis.js';
import { describeConformance } from '../../src/testing/conformance.js';
import { describeDedupStore } from '../../src/testing/dedup-store.js';
import { bePatient } from '../support/patience.js';
import { describeStoreModel } from './model/suite.js';
import { agingClock } from './support/aging-clock.js';
import { age, CLIENTS, dropAll, freshPrefix } from './support/redis.js';
import { needRedis } from './support/redis-scene.js';
import { dedupTarget } from './support/targets.js';

bePatient();

await needRedis();

/** More than any case takes on a busy machine. */
const DRIFT_MS = 5_000;

interface Subject {
  readonly store: RedisDedupStore;
  readonly drift: number;
  pass(ms: number): Promise<void>;
  dispose(): Promise<void>;
}

describe.each(Object.entries(CLIENTS))('redisDedupStore over %s', (name, connect) => {
  const create = async (options: RedisDedupStoreOptions = {}): Promise<Subject> => {
    const client = await connect();
    const prefix = freshPrefix();
    return {
      store: redisDedupStore(client.connection, { ...options, prefix }),
      drift: DRIFT_MS,
      pass: ms => age(client, prefix, ms),
      async dispose() {
        await dropAll(client, prefix);
        await client.close();
      },
    };
  };

  describeDedupStore({ describe, it }, 'the store', () => create());

  // Stories go on for months, and back: what Redis deletes by itself meanwhile has tests of its own.
  describeStoreModel('the store', () => create({ doubtTtl: Infinity, expiredTtl: Infinity }), { stories: 100 });

  describeConformance({ describe, it }, dedupTarget(`Redis over ${name}`, async () => {
    const { pass, ...subject } = await create();
    return { ...subject, clock: agingClock(pass) };
  }));
});
