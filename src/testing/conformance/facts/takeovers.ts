import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Step } from '../scenario.js';
import type { Answer, Stage } from '../stage.js';
import type { ServerConfig } from '../target.js';
import { ensureRuns, ensureSame, ensureStatus, startHeld } from './common.js';
import { heirOf, type Heir } from './heir.js';

/** A rival that takes over while a slow worker, cut off from its lease, still works; `won` is its answer. */
interface Takeover extends Heir {
  readonly won: Answer;
  /** Lets the slow one finish, and gives what its client gets. */
  end(): Promise<Answer | undefined>;
}

const takeOver = async (stage: Stage, step: Step): Promise<Takeover> => {
  const charge = stage.scenario({ ...step, hold: true });
  const { answer: slow } = await startHeld(charge);
  await stage.server.cutOff?.();
  await stage.advance(stage.lease + 1);
  const heir = heirOf(charge, await stage.open());
  const won = await heir.repeat();
  ensureEqual(won.status, 201, 'the rival runs, and is answered');
  await ensureRuns(charge, 2);
  const end = async (): Promise<Answer | undefined> => {
    await charge.release();
    return slow.catch(() => undefined);
  };
  return { ...heir, won, end };
};

const MAY_REPEAT: ServerConfig = { effects: 'idempotent' };

/** Workers that are slower than their lease. */
export const takeovers: readonly Fact[] = [
  {
    id: '36a',
    name: 'a slow worker that lost its key changes nothing: the answer stays that of the run that took over',
    needs: ['cut off', 'second server', 'time'],
    prefers: MAY_REPEAT,
    async run(stage) {
      const { charge, repeat, won, end } = await takeOver(stage, { status: 202 });
      await end();
      ensureSame(await repeat(), won);
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '36b',
    name: 'and its client gets the answer of the record, or is told to come back',
    needs: ['cut off', 'second server', 'time'],
    prefers: MAY_REPEAT,
    async run(stage) {
      const { won, end } = await takeOver(stage, { status: 202 });
      const late = await end();
      ensure(late, 'the slow worker’s client gets an answer');
      if (late.status === won.status) ensureSame(late, won);
      else ensureStatus(late, { words: stage.words, is: ['inProgress'] }, 'the slow worker’s client');
    },
  },
  {
    id: '37a',
    name: 'a slow worker that fails after it lost its key does not free it',
    needs: ['cut off', 'second server', 'time'],
    prefers: MAY_REPEAT,
    async run(stage) {
      const { charge, repeat, won, end } = await takeOver(stage, { throws: 'error' });
      await end();
      ensureSame(await repeat(), won);
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '38a',
    name: 'the rows of a slow worker that lost its key are rolled back',
    needs: ['cut off', 'second server', 'time', 'transactions'],
    prefers: MAY_REPEAT,
    async run(stage) {
      const { charge, repeat, won, end } = await takeOver(stage, { status: 202 });
      await end();
      ensureSame(await repeat(), won);
      ensureEqual((await charge.report()).effects, 1, 'one effect stands');
    },
  },
  {
    id: '39a',
    name: 'the answer of a worker that outlived its lease without a rival is stored',
    needs: ['cut off', 'second server', 'time'],
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      const { answer: slow } = await startHeld(charge);
      await stage.server.cutOff?.();
      await stage.advance(stage.lease + 1);
      await charge.release();
      const first = await slow;
      ensureEqual(first.status, 201, 'it is answered');
      ensureSame(await charge.send({ to: await stage.open() }), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '40a',
    name: 'a handler that works for three leases keeps its key all the time',
    needs: ['time'],
    prefers: MAY_REPEAT,
    async run(stage) {
      const charge = stage.scenario({ hold: true }, {});
      const { answer: running } = await startHeld(charge);
      for (let third = 0; third < 9; third += 1) await stage.advance(stage.lease / 3);
      if (stage.words.duplicates === 'refused') ensureStatus(await charge.send(), { words: stage.words, is: ['inProgress'] }, 'a repeat after three leases');
      await charge.release();
      ensureEqual((await running).status, 201, 'the run is answered');
      await charge.send();
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '40b',
    name: 'a worker that lost its key is told by its signal, and may begin no effect',
    needs: ['cut off', 'second server', 'time', 'signal', 'announce'],
    prefers: MAY_REPEAT,
    async run(stage) {
      const { charge, end } = await takeOver(stage, { effect: 'last', announce: true });
      await stage.server.reconnect?.();
      await stage.eventually(async () => (await stage.advance(stage.lease / 3), (await charge.report()).aborted === 1));
      await end();
      await stage.eventually(async () => (await charge.report()).forbidden === 1);
      ensureEqual((await charge.report()).effects, 1, 'only the rival has had its effect');
    },
  },
];
