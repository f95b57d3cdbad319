import { ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { ensureRuns, ensureSame, ensureStatus, startHeld } from './common.js';

/** What only a mock can offer to the tests that use it. */
export const mock: readonly Fact[] = [
  {
    id: '59a',
    name: 'its time is the test’s: to the millisecond, a lease and an answer last as long as they are said to',
    needs: ['mock', 'time'],
    async run({ scenario, lease, retention, advance }) {
      const charge = scenario();
      const first = await charge.send();
      await advance(retention - 1);
      ensureSame(await charge.send(), first, 'one millisecond before the end');
      await advance(lease > 0 ? 1 : 0);
      ensureEqual((await charge.send()).status, 201, 'at the end');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '59b',
    name: 'an answer can be lost after it was recorded, which makes the replay visible',
    needs: ['mock', 'lose answer'],
    async run({ scenario, server }) {
      const charge = scenario();
      await server.loseAnswer?.();
      const lost = await charge.send().then(() => false, () => true);
      ensureEqual(lost, true, 'the client sees a network error');
      ensureEqual((await charge.send()).json, { scenario: charge.id, run: 1 }, 'its retry gets the answer of the first run');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '59c',
    name: 'how often the handler has run can be asked at any time',
    needs: ['mock'],
    async run({ scenario, server, words }) {
      const charge = scenario({ hold: true }, {});
      ensureEqual(await server.executions?.(), 0, 'before the first request');
      const { answer: running } = await startHeld(charge);
      ensureEqual(await server.executions?.(), 1, 'during the run');
      ensureStatus(await charge.send(), { words, is: ['inProgress'] }, 'a duplicate');
      await charge.release();
      await running;
      await charge.send();
      ensureEqual(await server.executions?.(), 1, 'after a replay');
    },
  },
];
