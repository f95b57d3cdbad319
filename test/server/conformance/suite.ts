import { describe, it } from 'vitest';
import { describeContract, type Skip } from '../../../src/testing/contract.js';
import { bePatient } from '../../support/patience.js';
import { answers } from './answers.js';
import { basics } from './basics.js';
import { concurrency } from './concurrency.js';
import { fingerprints } from './fingerprints.js';
import { keys } from './keys.js';
import { leases } from './leases.js';
import type { Conformance, Stage } from './stage.js';

const groups: Record<string, readonly Conformance[]> = {
  'answers and replays': basics,
  'key syntax': keys,
  'same or other request': fingerprints,
  concurrency,
  'crashes, leases and fences': leases,
  'what is stored': answers,
};

/**
 * The whole conformance list, over one configuration of a store. A new store calls it once per configuration.
 *
 * @param skips - cases that cannot hold for it, each with its reason
 */
export const describeConformance = (configuration: string, create: () => Stage | Promise<Stage>, skips: readonly Skip[] = []): void => {
  bePatient();
  for (const [group, cases] of Object.entries(groups)) {
    const mine = skips.filter(skip => cases.some(({ name }) => name === skip.case));
    describeContract({ describe, it }, `${configuration}: ${group}`, cases, create, mine);
  }
};
