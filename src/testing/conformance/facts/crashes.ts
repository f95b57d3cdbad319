import { ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Step } from '../scenario.js';
import type { Stage } from '../stage.js';
import type { Verdict } from '../target.js';
import { ensureMembers, ensureRuns, ensureStatus, isMarked, startHeld } from './common.js';
import { heirOf, type Heir } from './heir.js';

/** Starts a run, kills its process at the point where the run waits, and opens another process when the lease is over. */
const dieHolding = async (stage: Stage, step: Step): Promise<Heir> => {
  const charge = stage.scenario({ ...step, hold: true });
  await startHeld(charge);
  await stage.server.crash?.();
  const heir = heirOf(charge, await stage.open());
  if (!stage.can('tx')) {
    const early = await heir.repeat();
    ensureStatus(early, { words: stage.words, is: ['inProgress', 'indeterminate'] }, 'a repeat before the lease is over');
    await stage.advance(stage.lease + 1);
  }
  return heir;
};

const NOBODY_KNOWS = 'a repeat of what died, and may have had its effect,';

/** Of a worker that died when its effect may have happened: nobody runs it again. */
const staysInDoubt = async (stage: Stage, step: Step): Promise<void> => {
  const { charge, repeat } = await dieHolding(stage, step);
  for (let again = 0; again < 2; again += 1) ensureStatus(await repeat(), { words: stage.words, is: ['indeterminate'] }, NOBODY_KNOWS);
  await ensureRuns(charge, 1);
};

const runsOnceMore = async (stage: Stage, step: Step): Promise<void> => {
  const { charge, repeat } = await dieHolding(stage, step);
  const fiveRepeats = async (): Promise<boolean> => {
    const all = await Promise.all(Array.from({ length: 5 }, () => repeat()));
    for (const answer of all) ensureStatus(answer, { words: stage.words, is: [201, 'inProgress'] }, 'each of five repeats at once');
    return all.some(({ status }) => status === 201);
  };
  // Again, because a database may need a moment to see that a connection is gone.
  await stage.eventually(fiveRepeats);
  await ensureRuns(charge, 2);
  ensureEqual((await charge.report()).effects, 1, 'there is one effect in all');
};

const resolveDoubt = async (stage: Stage, verdict: Verdict): Promise<Heir> => {
  const heir = await dieHolding(stage, { announce: true });
  ensureStatus(await heir.repeat(), { words: stage.words, is: ['indeterminate'] }, NOBODY_KNOWS);
  const { key } = heir.charge;
  ensureEqual(await stage.subject.resolve?.(key, 'acme', verdict), true, 'the operator ends the doubt');
  ensureEqual(await stage.subject.resolve?.(key, 'acme', 'not-applied'), false, 'and ends it once');
  return heir;
};

/** Workers that die. */
export const crashes: readonly Fact[] = [
  {
    id: '34a',
    name: 'a worker that died before its effect is followed by exactly one run, after its lease, or at once where there is none',
    needs: ['crash', 'second server', 'time'],
    prefers: { effects: 'marked' },
    stuck: "A server that is left in doubt here, because it takes every run for one that may have had its effect, names the ability 'config effects' if it can be told to go by what the handler announces.",
    run: stage => runsOnceMore(stage, { effect: 'last', announce: true }),
  },
  {
    id: '35a',
    name: 'a worker that died after an external effect leaves doubt, and nothing runs again',
    needs: ['crash', 'second server', 'time', 'announce'],
    config: { effects: 'marked' },
    run: stage => staysInDoubt(stage, { effect: 'first', announce: true }),
  },
  {
    id: '35b',
    name: 'a worker that died, and whose handler says nothing of its effects, leaves doubt, and nothing runs again',
    needs: ['crash', 'second server', 'time'],
    unless: ['tx'],
    run: stage => staysInDoubt(stage, { effect: 'first' }),
  },
  {
    id: '35c',
    name: 'an effect in the transaction of its record is rolled back with its worker, and one retry executes',
    needs: ['crash', 'second server', 'time', 'transactions'],
    config: { effects: 'marked' },
    run: stage => runsOnceMore(stage, { effect: 'first' }),
  },
  {
    id: '35d',
    name: 'who is told of doubt is told that neither a retry nor a new key is safe',
    needs: ['crash', 'second server', 'time', 'announce'],
    wording: true,
    async run(stage) {
      const { repeat } = await dieHolding(stage, { effect: 'first', announce: true });
      const refused = await repeat();
      ensureEqual(refused.status, 409, 'the status');
      ensureMembers(refused, { code: 'idempotency_indeterminate', retryable: false, safe_new_key: false }, 'what the document says');
    },
  },
  {
    id: '35e',
    name: 'doubt ends with the answer that an operator has found out, and repeats get it',
    needs: ['crash', 'second server', 'time', 'announce', 'resolve'],
    async run(stage) {
      const { charge, repeat } = await resolveDoubt(stage, { answer: Response.json({ id: 7 }, { status: 202 }) });
      const again = await repeat();
      ensureEqual([again.status, again.json, isMarked(again, stage)], [202, { id: 7 }, true], 'the answer that was found out');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '35f',
    name: 'doubt that ends as applied, without an answer, is told as an answer that was not kept',
    needs: ['crash', 'second server', 'time', 'announce', 'resolve'],
    async run(stage) {
      const { charge, repeat } = await resolveDoubt(stage, 'applied');
      ensureStatus(await repeat(), { words: stage.words, is: ['gone'] }, 'the repeat');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '35g',
    name: 'doubt that ends as not applied lets the same request run once more',
    needs: ['crash', 'second server', 'time', 'announce', 'resolve'],
    async run(stage) {
      const { charge, repeat } = await resolveDoubt(stage, 'not-applied');
      ensureStatus(await repeat({ body: '{"amount":1}' }), { words: stage.words, is: ['reused'] }, 'another request');
      ensureEqual((await repeat()).status, 201, 'the same request runs');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '35h',
    name: 'a server that can find out what happened does so before it refuses',
    needs: ['crash', 'second server', 'time', 'announce'],
    config: { recover: 'not-applied' },
    async run(stage) {
      const { charge, repeat } = await dieHolding(stage, { effect: 'first', announce: true });
      ensureEqual((await repeat()).status, 201, 'nothing had happened, so it runs');
      await ensureRuns(charge, 2);
    },
  },
];
