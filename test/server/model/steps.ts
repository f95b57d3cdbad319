import * as fc from 'fast-check';

/** What the effects of an endpoint bear is one for all its requests, so each key is named after it. */
export const KEYS = ['external', 'marked', 'idempotent', 'marked elsewhere'] as const;

export type Key = (typeof KEYS)[number];
export type Body = 'a' | 'b';

/** How a worker ends: with what it has done, or for a refusal if that is nothing; failing; or turned away at the door. */
export type End = 'answer' | 'fail' | 'turn away';

/** One thing that happens. `nth` chooses among the workers there are, the youngest first. */
export type Step =
  | { readonly do: 'claim'; readonly key: Key; readonly body: Body }
  /** So many new workers claim at once. */
  | { readonly do: 'race'; readonly key: Key; readonly body: Body; readonly count: number }
  /** A worker claims once more, as one does whose acknowledgement got lost. */
  | { readonly do: 'claim again'; readonly nth: number }
  | { readonly do: 'renew'; readonly nth: number }
  /** It says that an effect may happen from now on. */
  | { readonly do: 'announce'; readonly nth: number }
  /** It has its effect, where its endpoint's rules let it. */
  | { readonly do: 'effect'; readonly nth: number }
  /** It ends; if it had ended so already, it repeats what it said. */
  | { readonly do: 'end'; readonly nth: number; readonly how: End }
  /** Somebody finds out, truly, what happened. */
  | { readonly do: 'resolve'; readonly key: Key }
  | { readonly do: 'pass'; readonly minutes: number }
  | { readonly do: 'purge'; readonly dropDoubt: boolean };

/** One kind of step, its other fields by chance. */
const step = (name: Step['do'], rest: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Step> =>
  fc.record({ do: fc.constant(name), ...rest }) as fc.Arbitrary<unknown> as fc.Arbitrary<Step>;

const body = fc.constantFrom<Body>('a', 'a', 'a', 'b');
// Mostly who came last, and who came before is late.
const nth = fc.constantFrom(0, 0, 0, 1, 2);

/** Minutes around the lease of an hour, the half day that answers and the day that keys are kept, and long after. */
const FORWARD = [1, 25, 61, 61, 61, 700, 1_441, 50_000];
const BACK = [-1, -61, -700, -2_000];

/** The keys of a story: few, so that much happens to each; most can go wrong where effects are marked. */
const CASTS: readonly (readonly Key[])[] = [['marked'], ['marked'], ['external'], ['idempotent'], ['marked', 'marked elsewhere'], ['external', 'idempotent']];

/**
 * What may happen, in any order.
 *
 * @param jumpsBack - whether the store's clock may be set back
 */
export const stepsOf = (jumpsBack: boolean): fc.Arbitrary<Step[]> => {
  const minutes = fc.constantFrom(...FORWARD, ...(jumpsBack ? BACK : []));
  const stepsOn = (keys: readonly Key[]): fc.Arbitrary<Step[]> => {
    const key = fc.constantFrom(...keys);
    const any = fc.oneof(
      { weight: 6, arbitrary: step('claim', { key, body }) },
      { weight: 1, arbitrary: step('race', { key, body, count: fc.integer({ min: 2, max: 5 }) }) },
      { weight: 1, arbitrary: step('claim again', { nth }) },
      { weight: 2, arbitrary: step('renew', { nth }) },
      { weight: 4, arbitrary: step('announce', { nth }) },
      { weight: 4, arbitrary: step('effect', { nth }) },
      { weight: 4, arbitrary: step('end', { nth, how: fc.constantFrom<End>('answer', 'answer', 'fail', 'turn away') }) },
      { weight: 2, arbitrary: step('resolve', { key }) },
      { weight: 5, arbitrary: step('pass', { minutes }) },
      { weight: 1, arbitrary: step('purge', { dropDoubt: fc.boolean() }) },
    );
    return fc.array(any, { minLength: 1, maxLength: 40, size: 'max' });
  };
  return fc.constantFrom(...CASTS).chain(stepsOn);
};
