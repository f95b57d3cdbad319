import { systemClock } from '../../../clock.js';
import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Answer, Scenario, Stage } from '../stage.js';
import { codeOf, ensureMembers, ensureRuns, ensureSame, ensureStatus, startHeld } from './common.js';

/** As many requests at once as a page with a nervous user, or a queue that delivers twice, could send. */
const CROWD = 50;

/** ms, so that a server has noticed that its client is gone, if it looks. The case does not depend on it. */
const NOTICE_MS = 50;

const crowd = (charge: Scenario, count: number, body?: string): Promise<Answer[]> => Promise.all(Array.from({ length: count }, () => charge.send({ body })));

/** A repeat of a run that waits: refused at once, or answered when it ends. Gives the refusal. */
const meetRun = async ({ words }: Stage, charge: Scenario): Promise<Answer | undefined> => {
  const again = charge.send();
  if (words.duplicates === 'wait') {
    again.catch(() => {});
    return undefined;
  }
  const answer = await again;
  ensureStatus(answer, { words, is: ['inProgress'] }, 'the repeat of a run in progress');
  return answer;
};

/** Many requests at once, and slow ones. */
export const concurrency: readonly Fact[] = [
  {
    id: '28a',
    name: `of ${CROWD} identical requests at once exactly one runs; the others are refused as in progress or get its answer`,
    async run({ scenario, words }) {
      const charge = scenario();
      const all = await crowd(charge, CROWD);
      await ensureRuns(charge, 1);
      for (const answer of all) ensureStatus(answer, { words, is: [201, 'inProgress'] }, 'each of them');
      const [first, ...others] = all.filter(({ status }) => status === 201);
      ensure(first, 'at least the one that has run is answered');
      for (const other of [...others, await charge.send()]) ensureSame(other, first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '29a',
    name: 'a duplicate of a run in progress is refused, and told when to come back',
    needs: ['refuses duplicates'],
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      const refused = await meetRun(stage, charge);
      const seconds = Number(refused?.headers.get('retry-after') ?? '');
      ensure(Number.isInteger(seconds) && seconds >= 1, `Retry-After says at least one second\n  found    ${refused?.headers.get('retry-after')}`);
      await charge.release();
      await running;
    },
  },
  {
    id: '29b',
    name: 'nothing of that refusal is stored: the repeat afterwards gets the answer of the run',
    needs: ['refuses duplicates'],
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      await meetRun(stage, charge);
      await charge.release();
      const first = await running;
      ensureEqual(first.status, 201, 'the run is answered');
      ensureSame(await charge.send(), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '29c',
    name: 'the refusal of a duplicate is a problem document with the draft’s title',
    needs: ['refuses duplicates'],
    wording: true,
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      const refused = (await meetRun(stage, charge)) as Answer;
      ensureEqual(refused.headers.get('content-type'), 'application/problem+json', 'the media type');
      ensure(/^[1-5]$/.test(refused.headers.get('retry-after') ?? ''), 'Retry-After is 1 to 5 seconds');
      ensureMembers(refused, { code: 'idempotency_in_progress', retryable: true, title: 'A request is outstanding for this Idempotency-Key' }, 'what the document says');
      await charge.release();
      await running;
    },
  },
  {
    id: '30a',
    name: 'a duplicate that comes after the end, before the first answer was read, gets the answer',
    async run({ scenario }) {
      const charge = scenario();
      const first = await charge.begin();
      const again = await charge.send();
      ensureEqual(again.status, first.status, 'the status');
      ensureEqual(again.bytes.buffer, await first.arrayBuffer(), 'the bytes');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '32a',
    name: 'different keys never wait for each other',
    async run({ scenario }) {
      const slow = scenario({ hold: true }, {});
      const { answer: running } = await startHeld(slow);
      const quick = scenario();
      ensureEqual((await quick.send()).status, 201, 'another key is answered while the first still runs');
      await slow.release();
      ensureEqual((await running).status, 201, 'and so is the first');
    },
  },
  {
    id: '32b',
    name: 'many keys run at the same time',
    stuck: 'If each run holds a connection of a pool, say in `atOnce` how many runs that pool lets go on together.',
    async run({ scenario, atOnce }) {
      const charge = scenario({ hold: true });
      const running = Array.from({ length: atOnce }, (_, index) => charge.send({ key: `${charge.key}-${index}` }));
      await charge.held(atOnce);
      await charge.release();
      for (const answer of await Promise.all(running)) ensureEqual(answer.status, 201, 'each is answered');
      await ensureRuns(charge, atOnce);
    },
  },
  {
    id: '33a',
    name: 'a duplicate that may wait gets the answer of the run when it ends in time',
    needs: ['time'],
    config: { wait: 60_000 },
    async run({ scenario, until, advance }) {
      const charge = scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      let answered = false;
      const again = charge.send().finally(() => (answered = true));
      await advance(500);
      ensureEqual(answered, false, 'it waits');
      await charge.release();
      const first = await running;
      ensureSame(await until(again), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '33b',
    name: 'and is refused when its time is over',
    needs: ['time'],
    config: { wait: 1_000 },
    async run({ scenario, until, words }) {
      const charge = scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      ensureStatus(await until(charge.send()), { words, is: ['inProgress'] }, 'the duplicate');
      await charge.release();
      ensureEqual((await running).status, 201, 'the first gets its answer');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '43a',
    name: 'C99: a client that goes away does not end the run; its retry meets the run, then the answer',
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      const client = new AbortController();
      const { answer: left } = await startHeld(charge, { signal: client.signal });
      client.abort();
      await systemClock.sleep(NOTICE_MS);
      await meetRun(stage, charge);
      await ensureRuns(charge, 1);
      await charge.release();
      await left.catch(() => {});
      let again = await charge.send();
      // The run ends in the background, for nobody.
      await stage.eventually(async () => again.status === 201 || ((again = await charge.send()), false));
      ensure(JSON.stringify(again.json).includes(charge.id), 'the retry gets what the run has answered');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '44a',
    name: 'a server that is shut down during a run leaves no key held: the next one has the answer, or runs',
    needs: ['shutdown', 'second server'],
    async run({ scenario, server, open }) {
      const charge = scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      const down = server.shutdown?.();
      await charge.release();
      await Promise.allSettled([running, down]);
      const next = await open();
      const answer = await charge.send({ to: next });
      ensureEqual([answer.status, codeOf(answer)], [201, undefined], 'the next server answers at once');
      ensureEqual((await charge.report()).effects, 1, 'with one effect in all');
    },
  },
];
