import { describe, it } from 'vitest';
import { describeConformance as describeKit } from '../../../src/testing/conformance.js';
import type { Skip } from '../../../src/testing/contract.js';
import { bePatient } from '../../support/patience.js';
import { dedupTarget, type StoreStage } from '../support/targets.js';

/**
 * The conformance list over one configuration of a store, in process.
 *
 * @param skip - facts that cannot hold for it, each with its reason
 */
export const describeConformance = (configuration: string, create: () => StoreStage | Promise<StoreStage>, skip: readonly Skip[] = []): void => {
  bePatient();
  describeKit({ describe, it }, dedupTarget(configuration, create, { skip }));
};
