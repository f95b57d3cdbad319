import { expect, it, vi } from 'vitest';
import { createDedup, type Dedup, type DedupStore, type PurgeReport } from '../../src/server/index.js';
import { memoryDedupStore } from '../../src/server/stores/memory.js';
import { manualClock } from '../support/manual-clock.js';
import { DAY, endpointOf } from './support/endpoint.js';

const stage = (): { readonly dedup: Dedup; readonly store: DedupStore } => {
  const memory = memoryDedupStore();
  const store: DedupStore = { ...memory, purge: vi.fn(options => memory.purge(options)) };
  return { store, dedup: createDedup({ store, scope: () => 'acme' }) };
};

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

it.each([
  [{ every: Number.NaN }, 'startPurge: every is NaN; ms were expected, 1 or more.'],
  [{ every: 0 }, 'startPurge: every is 0; ms were expected, 1 or more.'],
  [{ every: '60s' }, 'startPurge: every is "60s"; ms were expected, 1 or more.'],
  [{ limit: 0 }, 'startPurge: limit is 0; rows were expected, 1 or more.'],
  [{ dropIndeterminateAfter: -1 }, 'startPurge: dropIndeterminateAfter is -1; ms were expected, 0 or more.'],
  [{ interval: 60_000 }, 'startPurge has no option "interval".'],
])('a purge that would go on without a pause, or by a misspelt option, does not start: %o', (options, message) => {
  const { dedup, store } = stage();
  expect(() => dedup.startPurge(options as never)).toThrow(message);
  expect(store.purge).not.toHaveBeenCalled();
});

it('a purge of no rows, which would report for ever that there is more, is refused', async () => {
  const { dedup, store } = stage();
  await expect(dedup.purge({ limit: 0 })).rejects.toThrow(new TypeError('purge: limit is 0; rows were expected, 1 or more.'));
  await expect(dedup.purge({ every: 1000 } as never)).rejects.toThrow('purge has no option "every"');
  expect(store.purge).not.toHaveBeenCalled();
  expect(await dedup.purge()).toMatchObject({ deleted: 0, more: false });
});
