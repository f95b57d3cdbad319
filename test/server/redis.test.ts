import { describe, it } from 'vitest';
import { redisDedupStore, type RedisDedupStore } from '../../src/server/stores/redis.js';
import { describeDedupStore } from '../../src/testing/dedup-store.js';
import { manualClock, type ManualClock } from '../support/manual-clock.js';
import { describeConformance } from './conformance/suite.js';
import { age, CLIENTS, dropAll, freshPrefix } from './support/redis.js';
import { needRedis } from './support/redis-scene.js';

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
  const create = async (): Promise<Subject> => {
    const client = await connect();
    const prefix = freshPrefix();
    return {
      store: redisDedupStore(client.connection, { prefix }),
      drift: DRIFT_MS,
      pass: ms => age(client, prefix, ms),
      async dispose() {
        await dropAll(client, prefix);
        await client.close();
      },
    };
  };

  describeDedupStore({ describe, it }, 'the store', create);

  describeConformance(`Redis over ${name}`, async () => {
    const { pass, ...subject } = await create();
    const inner = manualClock();
    const clock: ManualClock = {
      ...inner,
      get sleeping() {
        return inner.sleeping;
      },
      async advance(ms) {
        await pass(ms);
        await inner.advance(ms);
      },
    };
    return { ...subject, clock };
  });
});
