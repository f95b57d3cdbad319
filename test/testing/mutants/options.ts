import { ietf } from '../../../src/profiles/index.js';
import type { Profile } from '../../../src/profiles/profile.js';
import type { DedupOptions } from '../../../src/server/index.js';
import type { Mutant } from './mutant.js';

type Configure = NonNullable<Mutant['configure']>;

const always = (part: Partial<DedupOptions>): Configure => options => ({ ...options, ...part });

/** In the default dialect; the others are as they are. */
const inDefault = (part: Partial<Profile>): Configure => options => ({ ...options, ...(options.profile?.name === 'ietf' && { profile: { ...options.profile, ...part } }) });

/** Every server judges time by its own clock. */
const byOwnClock: Configure = (options, stage) => {
  const skew = (options.clock?.now() ?? 0) - stage.clock.now();
  const { store } = options;
  return {
    ...options,
    store: {
      ...store,
      claim: claim => store.claim({ ...claim, lease: claim.lease + skew }),
      settle: (hold, end) => store.settle(hold, end.to === 'indeterminate' ? end : { ...end, keyRetention: end.keyRetention + skew }),
    },
  };
};

/** Faults of configuration: each of them could be somebody’s default. */
export const optionMutants: readonly Mutant[] = [
  { name: 'asks for no key', fails: ['1a', '1b', '57a', '57b'], configure: always({ required: false }) },
  { name: 'asks for a key where none is required', fails: ['1c', '1d'], configure: always({ required: true }) },
  { name: 'accepts bare keys where quoted ones are required', fails: ['12c'], configure: always({ strict: false }) },
  { name: 'accepts no long keys', fails: ['15a'], configure: inDefault({ maxLength: 64 }) },
  { name: 'accepts keys of any length', fails: ['14c', '14d'], configure: inDefault({ maxLength: 100_000 }) },
  { name: 'protects GET too', fails: ['11a', '11b'], configure: always({ methods: ['GET', 'HEAD', 'OPTIONS', 'POST', 'PATCH'] }) },
  { name: 'mixes tenants', fails: ['50a', '50b', '50c'], configure: always({ scope: () => 'acme' }) },
  { name: 'takes nobody for somebody', fails: ['50c'], configure: always({ scope: request => request.headers.get('scenario-tenant') || 'nobody' }) },
  { name: 'mixes endpoints', fails: ['16b', '50b'], configure: always({ perEndpoint: false }) },
  { name: 'keeps endpoints apart where they are not', fails: ['50d'], configure: always({ perEndpoint: true }) },
  { name: 'runs again after a crash', fails: ['35a', '35b', '35d', '35e', '35f', '35g', '42c', '57c'], configure: always({ effects: 'idempotent' }) },
  { name: 'never runs again after a crash', fails: ['34a', '36a', '36b', '37a', '40b'], configure: always({ effects: 'external' }) },
  { name: 'asks nobody about doubt', fails: ['35h'], configure: always({ recover: undefined }) },
  { name: 'stores server errors', fails: ['46a', '47a', '47b'], configure: inDefault({ stores: 'all' }) },
  { name: 'stores successes only', fails: ['45a', '45c'], configure: inDefault({ stores: 'success' }) },
  { name: 'speaks one dialect', fails: ['46d', '60a', '60b', '60c', '60d'], configure: always({ profile: ietf }) },
  { name: 'never asks for the latest state', fails: ['60c'], configure: always({ latest: undefined }) },
  { name: 'runs unprotected when its records cannot be reached', fails: ['49a', '49b'], configure: always({ failOpen: true }) },
  { name: 'runs nothing when its records cannot be reached, whatever it is told', fails: ['49c'], configure: always({ failOpen: false }) },
  { name: 'reads requests of any size', fails: ['52c'], configure: always({ maxRequestBytes: Infinity }) },
  { name: 'stores answers of any size', fails: ['52b'], configure: always({ maxAnswerBytes: Infinity }) },
  { name: 'remembers no longer than an hour', fails: ['54a', '56a', '56b'], configure: always({ retention: 3_600_000 }) },
  { name: 'runs old keys as new requests', fails: ['54b', '54c', '54h', '57c', '60b'], configure: always({ onExpired: 'fresh' }) },
  { name: 'forgets keys with their answers', fails: ['54d', '54e'], configure: always({ keyRetention: undefined }) },
  { name: 'lets no duplicate wait', fails: ['33a'], configure: always({ wait: 0 }) },
  { name: 'lets duplicates wait for ever', fails: ['33b'], configure: options => ({ ...options, ...(options.wait && { wait: Infinity }) }) },
  { name: 'trusts its own clock', fails: ['56a', '56b'], configure: byOwnClock },
];
