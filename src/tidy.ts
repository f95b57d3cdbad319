import { isQuarantined, type Head } from './operation.js';
import type { Records } from './records.js';

/** Settled heads that one round looks at. */
const ROUND = 100;

/** Rounds come once per so many settled operations, so that their cost is spread and memory follows what is kept. */
const EVERY = 64;

export interface Tidy {
  /** Counts a settled operation; now and then it starts a round in the background. */
  readonly count: () => void;
  /** Drops what is over: answers first, then what is left of anonymous operations, then tombstones. Open heads are never touched. */
  readonly run: () => Promise<void>;
}

export const createTidy = (records: Records): Tidy => {
  let settled = 0;
  let running: Promise<void> | undefined;

  const drop = async (head: Head): Promise<void> => {
    const hasMore = head.name !== undefined && head.answer !== undefined && !head.answer.omitted;
    const { head: left } = hasMore ? await records.apply(head, { type: 'drop-answer' }, 'relaxed') : { head };
    if (left && left.due <= records.now()) await records.remove(left);
  };

  /** Page by page, each head once: those that must stay, unreadable ones say, would be met again for ever. */
  const run = async (): Promise<void> => {
    for await (const page of records.pages({ shelf: 'settled', dueBy: records.now(), limit: ROUND })) {
      await Promise.all(page.filter(head => !isQuarantined(head)).map(drop));
    }
  };

  const once = (): Promise<void> => {
    running ??= run().finally(() => (running = undefined));
    return running;
  };

  return {
    count: () => {
      settled += 1;
      // A failure here is met again, and told, by whatever needs the store next.
      if (settled % EVERY === 0) once().catch(() => undefined);
    },
    run: once,
  };
};
