import { afterAll, beforeAll, describe, it } from 'vitest';
import { redisDedupStore, type RedisDedupStore } from '../../src/server/stores/redis.js';
import { describeDedupStore } from '../../src/testing/dedup-store.js';
import { manualClock, type ManualClock } from '../support/manual-clock.js';
import { describeConformance } from './conformance/suite.js';
import { age, CLIENTS, dropAll, freshPrefix, needRedis, type TestClient } from './support/redis.js';

await needRedis();

describe.each(Object.entries(CLIENTS))('redisDedupStore over %s', (name, connect) => {
  let client: TestClient;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  const create = (): { store: RedisDedupStore; prefix: string; dispose: () => Promise<void> } => {
    const prefix = freshPrefix();
    return { store: redisDedupStore(client.connection, { prefix }), prefix, dispose: () => dropAll(client, prefix) };
  };

  describeDedupStore({ describe, it }, 'the store', () => {
    const { store, prefix, dispose } = create();
    return { store, pass: ms => age(client, prefix, ms), dispose };
  });

  describeConformance(`Redis over ${name}`, () => {
    const { store, prefix, dispose } = create();
    const inner = manualClock();
    const clock: ManualClock = {
      ...inner,
      get sleeping() {
        return inner.sleeping;
      },
      async advance(ms) {
        await age(client, prefix, ms);
        await inner.advance(ms);
      },
    };
    return { store, clock, dispose };
  });
});
