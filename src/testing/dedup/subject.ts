import type { Claim, ClaimResult, Hold, Settlement, StoredAnswer } from '../../server/record.js';
import type { DedupStore } from '../../server/store.js';

/** A dedup store under test. */
export interface DedupStoreSubject {
  readonly store: DedupStore;
  /** Lets `ms` pass on the store's own clock; a store that cannot move its clock ages its rows instead. */
  readonly pass: (ms: number) => Promise<void> | void;
  /** ms that the store's clock may move on by itself during a case, less than 10 s; 0 for a clock that only `pass` moves. @default 0 */
  readonly drift?: number;
  /** Called when the case is over. */
  dispose?(): Promise<void> | void;
}

export interface DedupStoreCase {
  readonly name: string;
  run(subject: DedupStoreSubject): Promise<void>;
}

/** Durations of the cases, ms. The lease is long enough to race within it on a slow database. */
export const LEASE: number = 30_000;
export const HOUR: number = 3_600_000;
export const DAY: number = 24 * HOUR;

export const claimOf = (owner: string, more: Partial<Claim> = {}): Claim => ({
  scope: 'shop',
  key: 'k1',
  fingerprint: 'v1:sha256:aa',
  owner,
  operationRef: `ref-${owner}`,
  lease: LEASE,
  keyRetention: DAY,
  effects: 'external',
  onExpired: 'fresh',
  ...more,
});

export const answerOf = (more: Partial<StoredAnswer> = {}): StoredAnswer => ({
  status: 201,
  headers: [['content-type', 'application/json'], ['location', '/charges/1']],
  body: new TextEncoder().encode('{"id":1}'),
  ...more,
});

export const completed = (answer: StoredAnswer = answerOf(), retention: number = DAY, keyRetention: number = retention): Settlement => ({
  to: 'completed', answer, retention, keyRetention,
});

export const released = (keepFingerprint: boolean): Settlement => ({ to: 'retryable', keepFingerprint, keyRetention: DAY });

export const holdOf = ({ scope, key, owner }: Claim, result: ClaimResult): Hold => {
  if (result.kind !== 'won') throw new Error(`Not so: the claim of ${owner} wins\n  found ${JSON.stringify(result)}`);
  return { scope, key, owner, fence: result.fence };
};

/** Claims and expects to win. */
export const win = async (store: DedupStore, owner: string, more: Partial<Claim> = {}): Promise<Hold> => {
  const claim = claimOf(owner, more);
  return holdOf(claim, await store.claim(claim));
};

/** Many claims at once, each by an owner of its own. */
export const race = (store: DedupStore, count: number, more: Partial<Claim> = {}): Promise<ClaimResult[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => store.claim(claimOf(`racer-${index}`, more))));

export const kindsOf = (results: readonly ClaimResult[]): Record<string, number> => {
  const kinds: Record<string, number> = {};
  for (const { kind } of results) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return kinds;
};
