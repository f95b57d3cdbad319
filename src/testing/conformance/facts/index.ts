import { numberOf, type Fact } from '../fact.js';
import { answers } from './answers.js';
import { basics } from './basics.js';
import { concurrency } from './concurrency.js';
import { cors } from './cors.js';
import { crashes } from './crashes.js';
import { dialects } from './dialects.js';
import { expiry } from './expiry.js';
import { fingerprints } from './fingerprints.js';
import { keys } from './keys.js';
import { mock } from './mock.js';
import { records } from './records.js';
import { refusals } from './refusals.js';
import { takeovers } from './takeovers.js';
import { tenancy } from './tenancy.js';

const compare = (a: Fact, b: Fact): number => numberOf(a) - numberOf(b) || (a.id < b.id ? -1 : 1);

/** All facts, in the order of their numbers. */
export const facts: readonly Fact[] = [
  ...basics, ...keys, ...fingerprints, ...answers, ...refusals, ...concurrency, ...crashes, ...takeovers, ...records, ...tenancy, ...expiry, ...cors, ...mock, ...dialects,
].sort(compare);
