/** The three functions of a test runner that a suite needs; vitest, jest and node:test all have them. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => unknown;
  readonly it: ((name: string, run: () => Promise<void>) => unknown) & { skip(name: string, run: () => Promise<void>): unknown };
}

/** A case that cannot hold for a driver, and why. */
export interface Skip {
  /** The name of the case, word for word. */
  readonly case: string;
  readonly reason: string;
}

/** One fact about every driver of an interface. */
export interface Case<Subject> {
  readonly name: string;
  run(subject: Subject): Promise<void>;
}

const reasonsOf = (cases: readonly { readonly name: string }[], skips: readonly Skip[]): Map<string, string> => {
  const unknown = skips.find(skip => !cases.some(({ name }) => name === skip.case));
  if (unknown) throw new Error(`No case of this contract is called '${unknown.case}'. Take the name from the contract, word for word.`);
  const silent = skips.find(skip => skip.reason.trim() === '');
  if (silent) throw new Error(`The case '${silent.case}' is skipped without a reason. Say why it cannot hold for this driver.`);
  return new Map(skips.map(skip => [skip.case, skip.reason]));
};

/** The one place for a reason that every test runner has. */
export const skippedName = (name: string, reason: string): string => `${name} (skipped: ${reason})`;

/** Runs each case on a fresh subject, with any test runner. A skipped case shows its reason in its name. */
export const describeContract = <Subject extends { dispose?(): Promise<void> | void }>(
  { describe, it }: TestRunner,
  name: string,
  cases: readonly Case<Subject>[],
  create: () => Subject | Promise<Subject>,
  skips: readonly Skip[] = [],
): void => {
  const reasons = reasonsOf(cases, skips);
  describe(name, () => {
    for (const one of cases) {
      const reason = reasons.get(one.name);
      const run = async (): Promise<void> => {
        const subject = await create();
        try {
          await one.run(subject);
        } finally {
          await subject.dispose?.();
        }
      };
      if (reason === undefined) it(one.name, run);
      else it.skip(skippedName(one.name, reason), run);
    }
  });
};
