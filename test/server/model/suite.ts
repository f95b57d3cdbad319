import * as fc from 'fast-check';
import { describe, it } from 'vitest';
import type { DedupStoreSubject } from '../../../src/testing/index.js';
import { stepsOf, type Step } from './steps.js';
import { worldOf } from './world.js';

export interface ModelOptions {
  /** Random stories; each is on a store of its own. @default 300 */
  readonly stories?: number;
  /** Whether the subject can set its clock back. @default true */
  readonly jumpsBack?: boolean;
  /** ms; nothing takes as long, it ends what hangs. @default 120_000 */
  readonly timeout?: number;
}

const tell = async (subject: DedupStoreSubject, steps: readonly Step[]): Promise<void> => {
  const world = worldOf(subject);
  try {
    for (const step of steps) await world.take(step);
  } catch (cause) {
    throw new Error(`${(cause as Error).message}\nWhat happened:\n  ${world.story.join('\n  ')}`, { cause });
  } finally {
    await subject.dispose?.();
  }
};

/**
 * Random interleavings of workers, clients, operators and clocks, told to a store and to a simple model of what clients
 * may rely on. Any dedup store can be given; a clock that runs by itself may be off by seconds.
 */
export const describeStoreModel = (name: string, create: () => DedupStoreSubject | Promise<DedupStoreSubject>, options: ModelOptions = {}): void => {
  const { stories = 300, jumpsBack = true, timeout = 120_000 } = options;
  describe(`${name} against a model`, () => {
    it('has at most one effect in a life of a key; a replay is its first answer; a stale owner changes nothing; unknown never becomes fresh', async () => {
      await fc.assert(
        fc.asyncProperty(stepsOf(jumpsBack), async steps => tell(await create(), steps)),
        { numRuns: stories },
      );
    }, timeout);
  });
};
