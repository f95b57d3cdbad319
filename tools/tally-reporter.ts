import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';

/** What a run of vitest came to, for the one closing line of `npm test`. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** Skipped with a reason: `context.skip('reason')`, or `(skipped: reason)` at the end of the name. */
  readonly excused: readonly string[];
  /** Skipped without one: that is a test which nobody runs and nobody misses, so the run fails. */
  readonly unexcused: readonly string[];
}

/** Where a suite for any test runner gives its reason, because not every runner has a context to skip with. */
const REASON_IN_NAME = /\(skipped: \S.*\)$/;

const tally = (modules: readonly TestModule[], unhandledErrors: number): Tally => {
  const tests = modules.flatMap(module => [...module.children.allTests()]);
  const count = (state: string): number => tests.filter(test => test.result().state === state).length;
  const skips = tests.filter(test => test.result().state === 'skipped').map(test => {
    const result = test.result();
    const name = `${test.project.name}: ${test.fullName}`;
    const note = 'note' in result ? result.note : undefined;
    return { said: note ? `${name} (${note})` : name, isExcused: Boolean(note) || REASON_IN_NAME.test(name) };
  });
  // A file that cannot be loaded, or a hook that throws, has no test to blame; it is one failure all the same.
  const broken = modules.flatMap(module => [module, ...module.children.allSuites()]).filter(part => part.errors().length > 0).length;
  return {
    passed: count('passed'),
    failed: count('failed') + broken + unhandledErrors,
    excused: skips.filter(skip => skip.isExcused).map(({ said }) => said),
    unexcused: skips.filter(skip => !skip.isExcused).map(({ said }) => said),
  };
};

/** Writes the tally of a run to `file`, as JSON. */
export const tallyReporter = (file: string): Reporter => ({
  onTestRunEnd: (modules, unhandledErrors) => writeFileSync(file, JSON.stringify(tally(modules, unhandledErrors.length))),
});
