import { afterAll, describe, expect, test } from 'vitest';
import { openForAll } from '../../support/open-for-all.js';
import { SUBJECTS, type CrashDatabase } from './support/databases.js';
import { startFleet, type Fleet } from './support/fleet.js';
import { isReplay } from './support/scene.js';

/** Only catches hangs: processes start slowly on a busy machine. */
const PATIENCE_MS = 60_000;

/** ms; much longer than any test, so that no lease ends by itself. */
const LEASE_MS = 3_600_000;

const PROCESSES = 3;

describe.each(SUBJECTS)(`requests with one key at once to ${PROCESSES} processes, $name`, ({ open, batches }) => {
  let database: CrashDatabase;
  let fleet: Fleet;
  const endings: (() => void)[] = [];
  // Also where opening has failed half way.
  afterAll(() => endings.forEach(end => end()));
  openForAll(async () => {
    const atEnd = (end: () => void): void => void endings.push(end);
    database = await open(atEnd);
    fleet = await startFleet({ database: database.at, lease: LEASE_MS, atEnd }, PROCESSES);
    return async () => {
      await fleet.close();
      await database.workersGone();
      await database.close();
    };
  }, PATIENCE_MS);

  const endpoints = (['tx', 'lease', 'lease-elsewhere'] as const).filter(name => batches.flat().some(({ endpoint }) => endpoint === name));
  for (const endpoint of endpoints) {
    for (const count of [32, 200]) {
      test(`28, C92: of ${count} one runs, in one process, and the others hear 409 or get its answer; ${endpoint}`, { timeout: PATIENCE_MS }, async () => {
        const key = `${endpoint}-${count}`;
        const responses = await Promise.all(Array.from({ length: count }, (_, at) => fleet.pick(at).send(endpoint, key)));
        const kinds = responses.map(response => (isReplay(response) ? 'replay' : response.status));
        expect([kinds.filter(kind => kind === 201).length, kinds.filter(kind => ![201, 409, 'replay'].includes(kind))]).toEqual([1, []]);
        const [id, ...more] = await database.charges(key);
        const again = await fleet.pick(0).send(endpoint, key);
        expect([isReplay(again), await again.json(), more, fleet.entries(key)]).toEqual([true, { id }, [], 1]);
      });
    }
  }
});
