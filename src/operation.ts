import type { HeadRef, StoredHead } from './keystore/keystore.js';

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
  readonly contentType?: string | undefined;
  /** Kept where it is not `same-origin`: a resumed request needs the same cookies rule. */
  readonly credentials?: RequestCredentials | undefined;
  /** The caller asked the platform to follow redirects itself. */
  readonly follow?: true | undefined;
}

/** Why a settled operation has no answer to give back. */
export type Omission = 'too-large' | 'expired' | 'reconciled' | 'unavailable';

/** The answer that settled an operation. The body bytes are the head's `response`. */
export interface AnswerMeta {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  /** Without Set-Cookie. */
  readonly headers: HeaderList;
  readonly omitted?: Omission | undefined;
}

/** Why nobody resends a pending operation now. */
export type Parking = 'auth' | 'redirected' | 'offline';

/** Where a key came from. Only a random key that never left this store is known to be nowhere else. */
export type KeySource = 'derived' | 'random' | 'adopted';

/** Why a rejection is one: by an answer that is stored under the key, by one that may not be, before admission, or by reconcile. */
export type Refusal = 'stored' | 'answered' | 'not-admitted' | 'reconciled';

/** A generation that is over: its key is spent, what it proved is kept. */
export interface PastGeneration {
  readonly generation: number;
  readonly key: string;
  readonly fingerprint?: string | undefined;
  readonly state: State;
  readonly status?: number | undefined;
  /** A success that arrived after the generation was given up: two effects may exist. */
  readonly lateStatus?: number | undefined;
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
  readonly name?: string | undefined;
  readonly generation: number;
  readonly revision: number;
  readonly key: string;
  readonly keySource: KeySource;
  /** The key may have been sent by someone who does not share this store: derived, adopted, or handed out. */
  readonly elsewhere: boolean;
  readonly state: State;
  /** Why it is in this state, in a word. */
  readonly reason?: string | undefined;
  readonly refusal?: Refusal | undefined;
  /** Missing while a key is only reserved, and after the operation is settled. */
  readonly snapshot?: SnapshotMeta | undefined;
  readonly fingerprint?: string | undefined;
  /** ms since the epoch, as all times here. */
  readonly createdAt: number;
  /** Set durably before the first byte may leave; cleared only by a driver that proved nothing left. */
  readonly firstSentAt?: number | undefined;
  readonly lastSentAt?: number | undefined;
  readonly settledAt?: number | undefined;
  /** ms the server promises to remember the key, counted from firstSentAt. */
  readonly keyWindow: number;
  /** HTTP sends, as far as they are known; one without a recorded outcome counts. */
  readonly attempts: number;
  /** An attempt may have reached the server and its whole answer is not known. */
  readonly ambiguous: boolean;
  /** A success began to arrive; only reconcile may call it rejected from then on. */
  readonly sawSuccess: boolean;
  readonly assumed?: true | undefined;
  readonly parked?: Parking | undefined;
  readonly nextAttemptAt?: number | undefined;
  readonly lease?: Lease | undefined;
  /** Grows with every claim; a driver with an older one is stale. */
  readonly fence: number;
  readonly answer?: AnswerMeta | undefined;
  /** A success that arrived for a rejected or cancelled operation: two effects may exist. */
  readonly lateStatus?: number | undefined;
  readonly past: readonly PastGeneration[];
}

/** The format that this version writes; a head with a higher one is left alone. */
export const HEAD_FORMAT = 1;

/** An answer with its bytes. */
export interface Answer {
  readonly meta: AnswerMeta;
  readonly body: ArrayBuffer | null;
}

/** In place of an answer that nobody has: the outcome is known by other means. */
export const NO_ANSWER: Answer = { meta: { status: 0, statusText: '', url: '', headers: [], omitted: 'reconciled' }, body: null };

/** What a driver knows of its attempts when it lets go. */
export interface Progress {
  readonly attempts: number;
  readonly ambiguous: boolean;
  readonly sawSuccess: boolean;
  readonly lastSentAt?: number | undefined;
}

/** A snapshot with its bytes and what it asks for. */
export interface Frozen {
  readonly snapshot: SnapshotMeta;
  readonly body: ArrayBuffer | null;
  readonly fingerprint: string;
}

/** Whether a record may be driven by this version at all. */
export const isQuarantined = (head: Head): boolean => head.unreadable !== undefined || head.format > HEAD_FORMAT;

/** The head as it was for an earlier generation, as far as that is kept. */
export const atGeneration = (head: Head, generation: number): Head => ({ ...head, ...(generation === head.generation ? {} : head.past.find(past => past.generation === generation)) });

/** Operations that nobody can name again: they are resent only while their caller waits. */
export const isAnonymous = (head: Pick<Head, 'name'>): boolean => head.name === undefined;

/** Rows that are no operations: what the client keeps for itself. */
export const isMeta = (ref: Pick<HeadRef, 'id'>): boolean => ref.id.startsWith('meta:');

export const refOf = ({ client, scope, id }: HeadRef): HeadRef => ({ client, scope, id });
