import type { Claim, ClaimResult, DedupRecord, Settlement } from '../../../src/server/index.js';
import type { Mutant } from './mutant.js';

type Spoil = NonNullable<Mutant['store']>;

const DAY = 86_400_000;

const FOR_EVER = 1_000 * DAY;

/** A store that is given other ends of runs than those that happened. */
const settling = (change: (settlement: Settlement) => Settlement): Spoil => ({ store }) => ({ ...store, settle: (hold, settlement) => store.settle(hold, change(settlement)) });

interface Told {
  readonly claim: Claim;
  readonly result: ClaimResult;
  readonly before: DedupRecord | undefined;
}

/** A store that says something else than what it knows. */
const telling = (change: (told: Told) => ClaimResult): Spoil => ({ store }) => ({
  ...store,
  async claim(claim) {
    const before = await store.get(claim);
    return change({ claim, before, result: await store.claim(claim) });
  },
});

const inProgress = ({ result: { operationRef } }: Told): ClaimResult => ({ kind: 'in-progress', leaseLeft: 1_000, operationRef });

const wonAll = ({ claim, before, result }: Told): ClaimResult => {
  const lost = (result.kind === 'in-progress' && before?.state !== 'in_progress') || (result.kind === 'completed' && before === undefined);
  return lost ? { kind: 'won', fence: 1, attempt: 1, operationRef: claim.operationRef } : result;
};

/** Claims that were repeated are told from new ones by their owner. */
const forgettingOwners = (): Spoil => {
  const seen = new Set<string>();
  return telling(told => {
    const again = seen.has(told.claim.owner);
    seen.add(told.claim.owner);
    return again && told.result.kind === 'won' ? inProgress(told) : told.result;
  });
};

/** The last to speak is right. */
const unfenced: Spoil = ({ store }) => {
  const late = new Map<string, Settlement>();
  return {
    ...store,
    async settle(hold, settlement) {
      if (!(await store.settle(hold, settlement))) late.set(hold.key, settlement);
      return true;
    },
    async claim(claim) {
      const result = await store.claim(claim);
      const said = late.get(claim.key);
      if (result.kind !== 'completed' || !said) return result;
      if (said.to === 'completed') return { ...result, answer: said.answer };
      return { kind: 'won', fence: 99, attempt: 99, operationRef: result.operationRef };
    },
  };
};

/** Refuses an end that comes after the lease, even where nobody else has claimed. */
const strict: Spoil = ({ store, clock }) => ({
  ...store,
  async settle(hold, settlement) {
    const row = await store.get(hold);
    return row !== undefined && row.state === 'in_progress' && row.leaseUntil < clock.now() ? false : store.settle(hold, settlement);
  },
});

/** Faults of the records. */
export const storeMutants: readonly Mutant[] = [
  { name: 'reads before it claims, and claims what it has not found', fails: ['28a', '31a'], store: telling(wonAll) },
  { name: 'does not know a claim again', fails: ['35h', '41a'], store: forgettingOwners() },
  { name: 'takes any end for that of the holder', fails: ['36a', '36b', '37a'], store: unfenced },
  { name: 'takes no end after the lease', fails: ['39a'], store: strict },
  { name: 'holds keys of dead workers for ever', fails: ['34a', '35d', '35e', '35f', '35g', '35h', '36a', '36b', '37a', '40b', '57c'], store: ({ store }) => ({ ...store, claim: claim => store.claim({ ...claim, lease: FOR_EVER }), renew: (hold, _lease, started) => store.renew(hold, FOR_EVER, started) }) },
  { name: 'never renews a lease', fails: ['40a', '40b'], store: ({ store }) => ({ ...store, renew: async (hold, _lease, started) => (started ? store.renew(hold, 30_000, true) : true) }) },
  { name: 'thinks that no lease can be lost', fails: ['40b'], store: ({ store }) => ({ ...store, renew: async (...renewal) => (await store.renew(...renewal), true) }) },
  {
    name: 'says of another request that it is in progress, while the first one is',
    fails: ['25a', '57a', '57b'],
    store: telling(told => (told.result.kind === 'key-reused' && told.before?.state === 'in_progress' ? inProgress(told) : told.result)),
  },
  { name: 'calls every new key safe', fails: ['18j'], store: telling(({ result }) => (result.kind === 'key-reused' ? { ...result, safeNewKey: true } : result)) },
  { name: 'calls no new key safe', fails: ['45c'], store: telling(({ result }) => (result.kind === 'key-reused' ? { ...result, safeNewKey: false } : result)) },
  { name: 'does not see how old a key says to be', fails: ['54h', '60b'], store: ({ store }) => ({ ...store, claim: claim => store.claim({ ...claim, keyMadeAt: undefined }) }) },
  { name: 'forgets which request a failed key belongs to', fails: ['46b'], store: settling(end => (end.to === 'retryable' ? { ...end, keepFingerprint: false } : end)) },
  { name: 'never forgets which request a key belongs to', fails: ['46c'], store: settling(end => (end.to === 'retryable' ? { ...end, keepFingerprint: true } : end)) },
  { name: 'frees a key whose outcome is unknown', fails: ['47b'], store: settling(end => (end.to === 'indeterminate' ? { to: 'retryable', keepFingerprint: true, keyRetention: DAY } : end)) },
  { name: 'doubts every failure', fails: ['46a', '46c', '47a', '47c'], store: settling(end => (end.to === 'retryable' ? { to: 'indeterminate', reason: 'mutant' } : end)) },
  {
    name: 'never forgets',
    fails: ['31a', '54a', '54b', '54c', '54d', '54e', '54f', '55a', '56a', '56b', '57c'],
    store: settling(end => {
      if (end.to === 'indeterminate') return end;
      return end.to === 'completed' ? { ...end, retention: FOR_EVER, keyRetention: FOR_EVER } : { ...end, keyRetention: FOR_EVER };
    }),
  },
  { name: 'purges nothing', fails: ['54f', '55a'], store: ({ store }) => ({ ...store, purge: async () => ({ ...(await store.purge({ limit: 0 })), deleted: 0, more: false }) }) },
  {
    name: 'purges what is in doubt',
    fails: ['54f', '54g', '55a'],
    store: ({ store }) => ({ ...store, purge: async options => (await store.purge({ ...options, dropIndeterminateAfter: 0 }), store.purge({ ...options, dropIndeterminateAfter: 0 })) }),
  },
  { name: 'purges in one go', fails: ['55a'], store: ({ store }) => ({ ...store, purge: () => store.purge({ limit: Infinity }) }) },
  { name: 'lets operators end what is no doubt', fails: ['35e', '35f', '35g'], store: ({ store }) => ({ ...store, resolve: async (...resolution) => (await store.resolve(...resolution), true) }) },
];
