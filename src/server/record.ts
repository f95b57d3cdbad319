/** Name, value; lower-case names, in the order of the wire. Plain data, because a store cannot keep `Headers`. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What is known of a key. `indeterminate`: an effect may have happened and nobody can tell; it never expires by itself. */
export type RecordState = 'in_progress' | 'completed' | 'retryable' | 'indeterminate';

/** The identity of a record: a key counts only within its scope. */
export interface RecordRef {
  readonly scope: string;
  readonly key: string;
}

/** Why a completed record has no body to replay. */
export type BodyOmission = 'too_large' | 'streaming' | 'unreadable' | 'expired' | 'resolved';

/** An answer as it is replayed. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  /** The exact bytes; null where there were none, or where they are omitted. */
  readonly body: Uint8Array<ArrayBuffer> | null;
  readonly omitted?: BodyOmission;
}

/** `leaseUntil` of a row that a transaction holds. */
export const NO_LEASE = 0;

/** One row of the dedup table. All times are ms on the store's clock. */
export interface DedupRecord extends RecordRef {
  readonly state: RecordState;
  /** Absent after a release that says nothing about the request: the next claim sets it. */
  readonly fingerprint?: string;
  readonly owner: string;
  /** Grows with every claim, so that a stale owner can change nothing. */
  readonly fence: number;
  readonly attempts: number;
  /** {@link NO_LEASE}: the lock of a transaction is what holds the key, and its effects end with it. */
  readonly leaseUntil: number;
  /** The handler has announced that an effect may happen from now on. */
  readonly effectStarted: boolean;
  /** Random; shown to clients, so that support can find the row without the key. */
  readonly operationRef: string;
  readonly firstSeenAt: number;
  readonly settledAt?: number;
  readonly answer?: StoredAnswer;
  readonly resultExpiresAt?: number;
  readonly keyExpiresAt: number;
  /** Why it is indeterminate. */
  readonly reason?: string;
}

/**
 * How a handler's effects bear a second run after its worker died: `external`, not at all; `marked`, until it called
 * `effectStarted()`; `idempotent`, always.
 */
export type Effects = 'external' | 'marked' | 'idempotent';

/** Asks for the right to run. Durations are ms. */
export interface Claim extends RecordRef {
  readonly fingerprint: string;
  readonly owner: string;
  readonly operationRef: string;
  readonly lease: number;
  readonly keyRetention: number;
  readonly effects: Effects;
  readonly onExpired: 'fresh' | 'refuse';
  /** When the key says that it was made, ms since 1970 on its maker's clock. With `onExpired: 'refuse'` an old one is refused even where no row is left. */
  readonly keyMadeAt?: number | undefined;
}

/** The right to run, as long as nobody has a higher fence. */
export interface Hold extends RecordRef {
  readonly owner: string;
  readonly fence: number;
}

export type ClaimResult =
  | { readonly kind: 'won'; readonly fence: number; readonly attempt: number; readonly operationRef: string }
  | { readonly kind: 'completed'; readonly answer: StoredAnswer; readonly operationRef: string }
  /** `leaseLeft` is in ms. */
  | { readonly kind: 'in-progress'; readonly leaseLeft: number; readonly operationRef: string }
  | { readonly kind: 'key-reused'; readonly safeNewKey: boolean; readonly operationRef: string }
  | { readonly kind: 'indeterminate'; readonly operationRef: string }
  | { readonly kind: 'key-expired'; readonly originalStatus: number | undefined; readonly operationRef: string };

/** How a run ended. Durations are ms. */
export type Settlement =
  | { readonly to: 'completed'; readonly answer: StoredAnswer; readonly retention: number; readonly keyRetention: number }
  | { readonly to: 'retryable'; readonly keepFingerprint: boolean; readonly keyRetention: number }
  | { readonly to: 'indeterminate'; readonly reason: string };

/** What an operator, or a `recover` callback, found out about an indeterminate record. Durations are ms. */
export type Resolution =
  | { readonly to: 'completed'; readonly answer: StoredAnswer; readonly retention: number; readonly keyRetention: number }
  | { readonly to: 'retryable'; readonly keyRetention: number };

/** What a transition makes of a row. Without `next` the row stays as it is. */
export interface Change<T> {
  readonly next?: DedupRecord;
  readonly result: T;
}

type Row = DedupRecord | undefined;

// Unknown never becomes fresh: a run that has no end, or whose end nobody knows, does not expire.
const isExpired = (row: DedupRecord, now: number): boolean =>
  (row.state === 'completed' || row.state === 'retryable') && row.keyExpiresAt <= now;

/**
 * What a row is to one who holds its lock: a transaction that still counted would hold the lock itself, so it was rolled
 * back, and unless it announced an effect elsewhere nothing has happened.
 */
export const unlocked = (row: DedupRecord): DedupRecord =>
  row.state === 'in_progress' && row.leaseUntil === NO_LEASE && !row.effectStarted ? { ...row, state: 'retryable' } : row;

/** The rule and the hash that a fingerprint names. Only these words: a text of the caller's own may have anything before a colon, and what differs there is another request. */
const ALGORITHM = /^(?:(?:v\d+|own):(?:sha256:|uuid5:|hmac-sha256:[\da-f]{8}:)?|none:$)/;

const algorithmOf = (fingerprint: string): string => ALGORITHM.exec(fingerprint)?.[0] ?? '';

/** Fingerprints of two algorithms cannot be compared; an upgrade must not turn honest retries into reuse. */
const differs = (stored: string | undefined, sent: string): boolean =>
  stored !== undefined && stored !== sent && algorithmOf(stored) === algorithmOf(sent);

const isRefusal = (row: DedupRecord): boolean => row.state === 'completed' && row.answer !== undefined && row.answer.status >= 400 && row.answer.status < 500;

const begin = (row: Row, claim: Claim, now: number): Change<ClaimResult> => {
  const { scope, key, fingerprint, owner, lease, keyRetention } = claim;
  const again = row !== undefined && !isExpired(row, now) ? row : undefined;
  const next: DedupRecord = {
    scope, key, state: 'in_progress', fingerprint, owner,
    fence: (row?.fence ?? 0) + 1,
    attempts: (again?.attempts ?? 0) + 1,
    leaseUntil: now + lease,
    effectStarted: false,
    operationRef: again?.operationRef ?? claim.operationRef,
    firstSeenAt: again?.firstSeenAt ?? now,
    keyExpiresAt: now + keyRetention,
  };
  return { next, result: { kind: 'won', fence: next.fence, attempt: next.attempts, operationRef: next.operationRef } };
};

const doubt = (row: DedupRecord, reason: string, now: number): DedupRecord => ({ ...row, state: 'indeterminate', reason, settledAt: now });

const mayRunAgain = (row: DedupRecord, effects: Effects): boolean => effects === 'idempotent' || (effects === 'marked' && !row.effectStarted);

const withoutBody = (answer: StoredAnswer): StoredAnswer => ({ status: answer.status, headers: [], body: null, omitted: answer.omitted ?? 'expired' });

const claimIn: Record<RecordState, (row: DedupRecord, claim: Claim, now: number) => Change<ClaimResult>> = {
  in_progress(row, claim, now) {
    const { fence, attempts, operationRef } = row;
    // The answer to its first claim got lost: the row is its own.
    if (row.owner === claim.owner) return { next: { ...row, leaseUntil: now + claim.lease }, result: { kind: 'won', fence, attempt: attempts, operationRef } };
    if (row.leaseUntil > now) return { result: { kind: 'in-progress', leaseLeft: row.leaseUntil - now, operationRef } };
    if (row.keyExpiresAt > now && mayRunAgain(row, claim.effects)) return begin(row, claim, now);
    return { next: doubt(row, 'the lease ended before the run did', now), result: { kind: 'indeterminate', operationRef } };
  },
  completed(row, _claim, now) {
    const { answer = { status: 200, headers: [], body: null, omitted: 'expired' }, operationRef } = row;
    const gone = (row.resultExpiresAt ?? row.keyExpiresAt) <= now;
    return { result: { kind: 'completed', answer: gone ? withoutBody(answer) : answer, operationRef } };
  },
  retryable: begin,
  indeterminate: ({ operationRef }) => ({ result: { kind: 'indeterminate', operationRef } }),
};

/** ms by which the clock that made a key may be behind the store's. */
const KEY_CLOCK_TOLERANCE = 300_000;

const isForgotten = ({ onExpired, keyMadeAt = Infinity, keyRetention }: Claim, now: number): boolean =>
  onExpired === 'refuse' && keyMadeAt + keyRetention + KEY_CLOCK_TOLERANCE <= now;

/** One claim. The order is the contract: expiry, then the fingerprint, then the state. */
export const claimRecord = (row: Row, claim: Claim, now: number): Change<ClaimResult> => {
  if (row === undefined) {
    if (!isForgotten(claim, now)) return begin(row, claim, now);
    return { result: { kind: 'key-expired', originalStatus: undefined, operationRef: claim.operationRef } };
  }
  if (isExpired(row, now)) {
    if (claim.onExpired === 'fresh') return begin(row, claim, now);
    return { result: { kind: 'key-expired', originalStatus: row.answer?.status, operationRef: row.operationRef } };
  }
  if (differs(row.fingerprint, claim.fingerprint)) {
    return { result: { kind: 'key-reused', safeNewKey: isRefusal(row), operationRef: row.operationRef } };
  }
  return claimIn[row.state](row, claim, now);
};

const isHeldBy = (row: Row, hold: Hold): row is DedupRecord => row !== undefined && row.owner === hold.owner && row.fence === hold.fence;

/** Extends the lease, and notes that an effect may happen from now on. False: the hold is lost. */
export const renewRecord = (row: Row, hold: Hold, lease: number, effectStarted: boolean, now: number): Change<boolean> => {
  if (!isHeldBy(row, hold) || row.state !== 'in_progress') return { result: false };
  return { next: { ...row, leaseUntil: now + lease, effectStarted: row.effectStarted || effectStarted }, result: true };
};

const settled = (row: DedupRecord, settlement: Settlement, now: number): DedupRecord => {
  if (settlement.to === 'indeterminate') return doubt(row, settlement.reason, now);
  const { fingerprint, answer: _answer, resultExpiresAt: _resultExpiresAt, reason: _reason, ...rest } = row;
  const over = { ...rest, state: settlement.to, settledAt: now, keyExpiresAt: now + settlement.keyRetention };
  if (settlement.to === 'retryable') return settlement.keepFingerprint && fingerprint !== undefined ? { ...over, fingerprint } : over;
  return { ...over, ...(fingerprint !== undefined && { fingerprint }), answer: settlement.answer, resultExpiresAt: now + settlement.retention };
};

/**
 * Ends a run. False: the hold is lost, nothing was changed. Repeating a settlement whose answer got lost is true again.
 * A late answer of the very run that was called indeterminate is accepted: nobody ran since, and it is the truth.
 */
export const settleRecord = (row: Row, hold: Hold, settlement: Settlement, now: number): Change<boolean> => {
  if (!isHeldBy(row, hold)) return { result: false };
  if (row.state === settlement.to) return { result: true };
  const open = row.state === 'in_progress' || (row.state === 'indeterminate' && settlement.to === 'completed');
  return open ? { next: settled(row, settlement, now), result: true } : { result: false };
};

/** Ends doubt, also that of a run whose lease is over. The fence grows: the old run may not speak any more. */
export const resolveRecord = (row: Row, resolution: Resolution, now: number): Change<boolean> => {
  const open = row !== undefined && (row.state === 'indeterminate' || (row.state === 'in_progress' && row.leaseUntil <= now));
  if (!open) return { result: false };
  const settlement: Settlement = resolution.to === 'completed' ? resolution : { ...resolution, keepFingerprint: true };
  return { next: { ...settled(row, settlement, now), fence: row.fence + 1 }, result: true };
};

/** What tidying does with one row. `since`: how long nobody knows, ms on the store's clock. */
export type Tidied =
  | { readonly kind: 'kept' | 'deleted' }
  | { readonly kind: 'body-dropped'; readonly next: DedupRecord }
  | { readonly kind: 'doubted'; readonly next: DedupRecord; readonly since: number }
  | { readonly kind: 'in-doubt'; readonly since: number };

const tidyIndeterminate = (row: DedupRecord, dropAfter: number | undefined, now: number): Tidied => {
  const since = row.settledAt ?? row.firstSeenAt;
  return dropAfter !== undefined && since + dropAfter <= now ? { kind: 'deleted' } : { kind: 'in-doubt', since };
};

/**
 * Deletes what is expired, drops bodies earlier where they expire earlier, and turns runs that died long ago into doubt.
 *
 * @param dropIndeterminateAfter - ms of doubt after which a row is given up; undefined keeps it for ever
 */
export const tidyRecord = (row: DedupRecord, dropIndeterminateAfter: number | undefined, now: number): Tidied => {
  if (isExpired(row, now)) return { kind: 'deleted' };
  if (row.state === 'indeterminate') return tidyIndeterminate(row, dropIndeterminateAfter, now);
  if (row.state === 'in_progress' && row.leaseUntil <= now && row.keyExpiresAt <= now) {
    return { kind: 'doubted', next: doubt(row, 'the lease ended before the run did', now), since: now };
  }
  const { answer, resultExpiresAt = Infinity } = row;
  if (answer && answer.omitted === undefined && resultExpiresAt <= now) return { kind: 'body-dropped', next: { ...row, answer: withoutBody(answer) } };
  return { kind: 'kept' };
};
