import { describe, onTestFinished, test } from 'vitest';
import { indexedDBDedupStore } from '../../src/server/stores/indexeddb.js';
import { dropDatabase, freshName } from '../server/databases.js';
import { manualClock } from '../support/manual-clock.js';
import { engineChecks } from './engine-checks.js';

describe('the dedup engine on two IndexedDB stores over one database', { timeout: 60_000 }, () => {
  test.each(engineChecks.map(check => [check.name, check] as const))('%s', async (_, check) => {
    const clock = manualClock();
    const name = freshName();
    onTestFinished(() => dropDatabase(name));
    const open = () => indexedDBDedupStore({ name, clock });
    await check.run({ stores: [open(), open()], pass: clock.advance, door: async handler => handler });
  });
});
