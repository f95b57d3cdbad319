import { expect, it } from 'vitest';
import { createDedup, type DedupStore, type PurgeReport } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { DAY, endpointOf } from './support/endpoint.js';

it('purges at once and then every so often, in batches until nothing is due, until it is stopped', async () => {
  const clock = manualClock();
  const endpoint = endpointOf({ store: memoryDedupStore({ clock }), clock });
  for (let index = 0; index < 5; index += 1) await endpoint.send({ key: `k${index}` });
  const reports: PurgeReport[] = [];
  const purger = endpoint.dedup.startPurge({ every: DAY + 1, limit: 2, onPurged: report => reports.push(report) });
  await expect.poll(() => reports.map(({ deleted }) => deleted)).toEqual([0]);
  await clock.advance(DAY + 1);
  await expect.poll(() => reports.map(({ deleted }) => deleted)).toEqual([0, 2, 2, 1]);
  await purger.stop();
  await endpoint.send({ key: 'later' });
  await clock.advance(3 * DAY);
  expect([reports.length, clock.sleeping]).toEqual([4, 0]);
});

it('a purge that fails is reported, and the next one comes all the same', async () => {
  const clock = manualClock();
  const memory = memoryDedupStore({ clock });
  let calls = 0;
  const store: DedupStore = { ...memory, purge: options => ((calls += 1) === 1 ? Promise.reject(new Error('store unreachable')) : memory.purge(options)) };
  const errors: unknown[] = [];
  const dedup = createDedup({ store, clock, scope: () => 'acme' });
  await using purger = dedup.startPurge({ every: 1_000, onError: error => errors.push(error) });
  await expect.poll(() => errors).toEqual([new Error('store unreachable')]);
  await clock.advance(1_000);
  expect([calls, errors.length]).toEqual([2, 1]);
  await purger.stop();
});
