import type { StoredHead } from './keystore/keystore.js';

/** What is known of an operation. `pending` and `in_doubt` are open: nobody may assume what became of them. */
export type State = 'pending' | 'succeeded' | 'rejected' | 'in_doubt' | 'cancelled';

/** Name, value; lower-case names, in the order of the wire. Plain data, because a store cannot clone `Headers`. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What is sent, frozen before the first send. The body bytes are the head's `request`. */
export interface SnapshotMeta {
  readonly method: string;
  readonly url: string;
  /** Non-credential headers, without content-type. */
  readonly headers: HeaderList;
  /** With the multipart boundary that the bytes were written with. */
  readonly contentType?: string;
}

/** Why a settled operation has no answer to give back. */
export type Omission = 'too-large' | 'expired' | 'reconciled' | 'unavailable';

/** The answer that settled an operation. The body bytes are the head's `response`. */
export interface AnswerMeta {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly omitted?: Omission;
}

/** Why nobody resends a pending operation now. */
export type Parking = 'auth' | 'redirected' | 'offline' | 'scope';

/** Where a key came from. Only a random key that never left this store is known to be nowhere else. */
export type KeySource = 'derived' | 'random' | 'adopted' | 'reserved';

/** A generation that is over: its key is spent, what it proved is kept. */
export interface PastGeneration {
  readonly generation: number;
  readonly key: string;
  readonly fingerprint?: string;
  readonly state: State;
  readonly status?: number;
  /** A success that arrived after the generation was given up: two effects may exist. */
  readonly lateStatus?: number;
}

export interface Lease {
  readonly owner: string;
  /** ms since the epoch. */
  readonly until: number;
}

/**
 * The one row of an operation: its current generation and revision, and what is left of the past ones. Everything but
 * the two byte fields is plain JSON.
 */
export interface Head extends StoredHead {
  readonly name?: string;
  readonly generation: number;
  readonly revision: number;
  readonly key: string;
  readonly keySource: KeySource;
  /** The key may have been sent by someone who does not share this store: true for derived, adopted, reserved keys. */
  readonly elsewhere: boolean;
  readonly state: State;
  /** Why it is in this state, in the words of the error that the caller gets. */
  readonly reason?: string;
  readonly snapshot?: SnapshotMeta;
  readonly fingerprint?: string;
  readonly createdAt: number;
  /** Set durably before the first byte may leave; cleared only by a driver that proved nothing left. */
  readonly firstSentAt?: number;
  readonly lastSentAt?: number;
  readonly settledAt?: number;
  /** ms the server promises to remember the key, counted from firstSentAt. */
  readonly keyWindow: number;
  readonly attempts: number;
  /** An attempt may have reached the server and its whole answer is not known. */
  readonly ambiguous: boolean;
  /** A success began to arrive; only reconcile may call it rejected from then on. */
  readonly sawSuccess: boolean;
  readonly parked?: Parking;
  /** ms since the epoch. */
  readonly nextAttemptAt?: number;
  readonly lease?: Lease;
  /** Grows with every claim; a driver with an older one is stale. */
  readonly fence: number;
  readonly answer?: AnswerMeta;
  /** The rejection is known to be stored under the key by the server. */
  readonly spent?: boolean;
  readonly past: readonly PastGeneration[];
}
