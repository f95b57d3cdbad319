import { systemClock } from '../../clock.js';
import { assertPromises } from './abilities.js';
import { configFor, type Fact } from './fact.js';
import { probe } from './probe.js';
import { openStage } from './stage.js';
import type { ConformanceTarget } from './target.js';

/** Long enough for a database under load; nothing is meant to take as long. */
const PATIENCE_MS = 20_000;

/** The cause of a failed fetch is where it says what happened; that of several addresses has a code only. */
export const tell = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  if (!(cause instanceof Error)) return message;
  return `${message} (${cause.message || (cause as { code?: string }).code})`;
};

/** @throws Error that says what is not so */
export const runFact = async (fact: Fact, target: ConformanceTarget): Promise<void> => {
  const { patience = PATIENCE_MS } = target;
  const over = new AbortController();
  const stage = await openStage(target, { config: configFor(fact, target), over: over.signal, patience });
  const late = systemClock.sleep(patience, over.signal).then(() => {
    const found = `It was not settled after ${patience} ms: the server gave no answer, or never came to where the case waits for it.`;
    throw new Error(fact.stuck ? `${found} ${fact.stuck}` : found);
  });
  try {
    assertPromises(fact, stage);
    await Promise.race([fact.run(stage), late]);
  } finally {
    over.abort();
    late.catch(() => {});
    await stage.dispose();
  }
};

/** @throws Error that says why no fact can be tried */
const reach = async (target: ConformanceTarget): Promise<void> => {
  try {
    await runFact(probe, target);
  } catch (error) {
    throw new Error(`No case can be tried on ${target.name}. ${tell(error)}`, { cause: error });
  }
};

/** Runs facts of a target that can be reached at all, which is tried once, before the first of them. */
export const factRunner = (target: ConformanceTarget): { reached(): Promise<void>; run(fact: Fact): Promise<void> } => {
  let reaching: Promise<void> | undefined;
  const reached = (): Promise<void> => (reaching ??= reach(target));
  return {
    reached,
    async run(fact) {
      await reached();
      await runFact(fact, target);
    },
  };
};
