import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Step } from '../scenario.js';
import type { Scenario, Stage } from '../stage.js';
import { ensureMembers, ensureRuns, ensureSame, ensureStatus, isMarked, sendTwice } from './common.js';

/** Answers of the handler that say nothing about the request, one after the other, then 201. */
const thenCreated = (status: number): readonly Step[] => [{ status, effect: 'none' }, {}];

const refusedAtTheDoor = async (charge: Scenario, status: number): Promise<void> => {
  ensureEqual((await charge.send()).status, status, 'the handler turns it away');
  ensureEqual((await charge.send({ body: '{"corrected":true}' })).status, 201, `after ${status} any request may come under the key`);
};

const storedRefusals = (...statuses: readonly number[]) => async ({ scenario }: Stage): Promise<void> => {
  for (const status of statuses) await sendTwice(scenario({ status }, {}));
};

/** Which answers are stored, and who answers before the dedup layer. */
export const refusals: readonly Fact[] = [
  {
    id: '45a',
    name: 'a refusal by the handler (400, 402, 404, 409, 410, 412, 422) is replayed',
    run: storedRefusals(400, 402, 404, 409, 410, 412, 422),
  },
  {
    id: '45b',
    name: 'a corrected request under the key of a stored refusal is refused as another request',
    async run({ scenario, words }) {
      const charge = scenario({ status: 400 });
      await charge.send({ body: '{"amount":-1}' });
      ensureStatus(await charge.send({ body: '{"amount":1}' }), { words, is: ['reused'] }, 'the corrected request');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '45c',
    name: 'it is told that a new key is safe, since nothing has happened under the old one',
    wording: true,
    async run({ scenario }) {
      const charge = scenario({ status: 400 });
      await charge.send({ body: '{"amount":-1}' });
      ensureMembers(await charge.send({ body: '{"amount":1}' }), { code: 'idempotency_key_reused', safe_new_key: true }, 'what the document says');
    },
  },
  {
    id: '46a',
    name: '500, 502, 503, 504, 408 and 429 of the handler are not replayed: the same request runs again',
    async run({ scenario }) {
      for (const status of [500, 502, 503, 504, 408, 429]) {
        const charge = scenario(...thenCreated(status));
        ensureEqual([(await charge.send()).status, (await charge.send()).status], [status, 201], `after ${status} it runs again`);
        await ensureRuns(charge, 2);
      }
    },
  },
  {
    id: '46b',
    name: 'after a server error the key still belongs to its request: another is refused',
    async run({ scenario, words }) {
      const charge = scenario(...thenCreated(503));
      await charge.send();
      ensureStatus(await charge.send({ body: '{"amount":1}' }), { words, is: ['reused'] }, 'another request');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '46c',
    name: 'who was turned away by the handler’s own door (401, 403, 423, 425, 429, 431) may come back with any body',
    async run({ scenario }) {
      for (const status of [401, 403, 423, 425, 429, 431]) await refusedAtTheDoor(scenario(...thenCreated(status)), status);
    },
  },
  {
    id: '46d',
    name: 'in Stripe’s dialect a 500 is stored too, and says that a retry is useless',
    config: { profile: 'stripe' },
    async run(stage) {
      for (const step of [{ status: 500 }, { throws: 'error' }] satisfies Step[]) {
        const [first, again] = await sendTwice(stage.scenario(step, {}));
        ensureEqual([first.status, isMarked(first, stage), isMarked(again, stage)], [500, false, true], 'status and markers');
        ensureEqual([first, again].map(({ headers }) => headers.get('stripe-should-retry')), ['false', 'false'], 'Stripe-Should-Retry');
      }
    },
  },
  {
    id: '47a',
    name: 'what the handler throws is a 500, is not stored, and frees the key for the same request',
    async run({ scenario }) {
      const charge = scenario({ throws: 'error', effect: 'none' }, {});
      ensureEqual([(await charge.send()).status, (await charge.send()).status], [500, 201], 'the second attempt runs');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '47b',
    name: 'a failure after an announced effect leaves doubt: the handler does not run again',
    needs: ['announce'],
    async run({ scenario, words }) {
      for (const failure of [{ throws: 'error' }, { status: 502 }] satisfies Step[]) {
        const charge = scenario({ ...failure, announce: true }, {});
        ensureStatus(await charge.send(), { words, is: [500, 502] }, 'the failure');
        ensureStatus(await charge.send(), { words, is: ['indeterminate'] }, 'the repeat');
        await ensureRuns(charge, 1);
      }
    },
  },
  {
    id: '47c',
    name: 'unless the handler knows that nothing has happened',
    needs: ['announce'],
    async run({ scenario }) {
      const charge = scenario({ throws: 'retryable', announce: true }, {});
      ensureEqual([(await charge.send()).status, (await charge.send()).status], [500, 201], 'it runs again');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '48a',
    name: 'a login (401) or a limiter (429) in front of the dedup layer leaves nothing under the key',
    needs: ['guard'],
    async run({ scenario }) {
      for (const guard of [401, 429]) {
        const charge = scenario();
        ensureEqual((await charge.send({ guard })).status, guard, 'the guard turns it away');
        await ensureRuns(charge, 0);
        ensureEqual((await charge.send({ body: '{"other":true}' })).status, 201, 'the key works later, with any body');
      }
    },
  },
  {
    id: '51a',
    name: 'who has lost the permission since the first answer gets no replay of it',
    needs: ['guard'],
    async run(stage) {
      const charge = stage.scenario();
      const first = await charge.send();
      for (const guard of [401, 403]) {
        const refused = await charge.send({ guard });
        ensureEqual(refused.status, guard, 'the guard comes first');
        ensure(!isMarked(refused, stage) && !new TextDecoder().decode(refused.bytes).includes(charge.id), 'nothing of the stored answer is told');
      }
      ensureSame(await charge.send(), first);
    },
  },
];
