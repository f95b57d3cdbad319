import type { Claim, ClaimResult, DedupRecord, Hold, RecordRef, Resolution, Settlement } from './record.js';

/** Rows of one purge, where nothing else is said: it bounds how long that keeps the table busy. */
export const PURGE_LIMIT = 1000;

export interface PurgeOptions {
  /** Most rows to change in one call. @default 1000 */
  readonly limit?: number | undefined;
  /** ms of doubt after which an indeterminate row is given up, and its key becomes fresh. @default undefined: never */
  readonly dropIndeterminateAfter?: number | undefined;
}

export interface PurgeReport {
  readonly deleted: number;
  readonly bodiesDropped: number;
  /** Runs that died long ago and are indeterminate now. */
  readonly doubted: number;
  /** Indeterminate rows among those looked at: somebody should look at them too. */
  readonly indeterminate: number;
  /** Since when the oldest of them is, ms on the store's clock. */
  readonly oldestIndeterminateAt: number | undefined;
  /** Stopped at `limit`: call again. */
  readonly more: boolean;
}

/** What a run in a transaction comes to. */
export interface Ending<T> {
  readonly value: T;
  readonly settlement: Settlement;
  /** Whether what was done in the transaction stays; the settlement does in any case. */
  readonly keep: boolean;
}

/** The right to run that a transaction has, as long as it lasts. */
export interface Entry<Tx> {
  /** The transaction, for the handler's own statements. */
  open(): Promise<Tx>;
  readonly fence: number;
  readonly attempt: number;
  readonly operationRef: string;
  /** Notes, outside of the transaction, that an effect elsewhere may happen from now on. */
  startEffect(): Promise<void>;
}

export type Entered<T> = { readonly kind: 'ended'; readonly ending: Ending<T>; readonly operationRef: string } | Exclude<ClaimResult, { kind: 'won' }>;

/**
 * A dedup table. Every method is one atomic step whose meaning is the function of the same name in `record.ts`; a store
 * over plain rows gets them from `rowStore`, one with a query language may say them in it. All times are the store's
 * own: callers give durations only. A method rejects when the store cannot be reached, and may then have been done.
 */
export interface DedupStore<Tx = unknown> {
  claim(claim: Claim): Promise<ClaimResult>;
  /** Extends the lease by `lease` ms from now. False: somebody else holds the key, or nobody. */
  renew(hold: Hold, lease: number, effectStarted: boolean): Promise<boolean>;
  /** Ends a run; false when the hold is lost. */
  settle(hold: Hold, settlement: Settlement): Promise<boolean>;
  /** Ends doubt; false when there is none. */
  resolve(ref: RecordRef, resolution: Resolution): Promise<boolean>;
  get(ref: RecordRef): Promise<DedupRecord | undefined>;
  /** Never removes a run that may still go on, nor, without being told so, one whose end is unknown. */
  purge(options?: PurgeOptions): Promise<PurgeReport>;
  /**
   * Runs `work` in a transaction of the store's database; `settle` is part of it, so that effects and record are committed
   * together. Absent where the store has no transactions.
   */
  transact?<T>(work: (tx: Tx, settle: DedupStore['settle']) => Promise<T>): Promise<T>;
  /**
   * Claims, runs and settles in one transaction, which holds the key by a lock instead of a lease. Present only in the
   * modes that work so. It rejects when the transaction was rolled back, or when nobody knows whether it was committed;
   * `get` tells afterwards.
   */
  enter?<T>(claim: Claim, work: (entry: Entry<Tx>) => Promise<Ending<T>>): Promise<Entered<T>>;
}

/** An ordered list that lives as long as the rows do. */
export interface Journal {
  /** Entries are plain JSON. */
  append(entry: object): Promise<void>;
  read(): Promise<object[]>;
}

/** A store that its user owns whole, as a mock does: it can be emptied, and keeps a journal beside the rows. */
export interface OwnedDedupStore extends DedupStore<never> {
  readonly journal: Journal;
  /** Forgets all rows and the journal. */
  clear(): Promise<void>;
}
