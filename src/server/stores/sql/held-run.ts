import { SamekeyError } from '../../../errors.js';
import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { claimRecord, NO_LEASE, unlocked, type Claim, type ClaimResult, type DedupRecord } from '../../record.js';
import type { Ending, Entered, Entry } from '../../store.js';
import type { Assignments } from './dialect.js';
import { isPlain } from './mode.js';
import { columnsOf, heldColumns, settledColumns } from './row.js';
import { FIRST_REVISION, type SeenRow, type Table } from './table.js';
import { ensureSameTransaction, watchWhole, type WholeCheck } from './whole.js';

export type Refused = Exclude<ClaimResult, { kind: 'won' }>;
export type Work<Tx, T> = (entry: Entry<Tx>) => Promise<Ending<T>>;

/** A run that has ended, and the row that it makes of the one it began with. */
interface Finished<T> {
  readonly ending: Ending<T>;
  readonly next: DedupRecord;
  /** It has announced an effect elsewhere. */
  readonly announced: boolean;
}

/** Rolls a transaction back without losing how its work ended. */
class Undo<T> extends Error {
  readonly finished: Finished<T>;
  constructor(finished: Finished<T>) {
    super('The transaction is rolled back on purpose.');
    this.finished = finished;
  }
}

/** A row that says only that the key was seen. Nobody holds it: to run is to lock it. */
const blank = ({ scope, key, fingerprint, operationRef, keyRetention }: Claim, now: number): DedupRecord => ({
  scope, key, state: 'in_progress', fingerprint, owner: '', fence: 0, attempts: 0, leaseUntil: NO_LEASE, effectStarted: false, operationRef,
  firstSeenAt: now, keyExpiresAt: now + keyRetention,
});

/** The columns of a blank row, its times from now on. */
export const blankColumns = ({ dialect }: Table, claim: Claim): Assignments => ({ ...columnsOf(blank(claim, 0), dialect.later), lease_until: dialect.time(NO_LEASE) });

/** A blank row as it was just inserted. */
export const blankRow = (claim: Claim, { now, transaction }: Pick<SeenRow, 'now' | 'transaction'>): SeenRow => ({ row: blank(claim, now), revision: FIRST_REVISION, now, transaction });

/** What is decided without a lock and without a write; undefined where the lock decides. */
export const refusal = ({ row, now }: SeenRow, claim: Claim): Refused | undefined => {
  const { next, result } = claimRecord(row, claim, now);
  return next || result.kind === 'won' ? undefined : result;
};

/** What can be said about a claim before it is made: a refusal, or that the key has a row. Undefined: nothing is against it. */
export const look = async (database: SqlDatabase, table: Table, claim: Claim): Promise<Refused | 'found' | undefined> => {
  const seen = await table.read(database, claim);
  if (seen) return refusal(seen, claim) ?? 'found';
  if (isPlain(claim)) return undefined;
  const { result } = claimRecord(undefined, claim, await table.now(database));
  return result.kind === 'won' ? undefined : result;
};

/** What a key that is locked by somebody else, or gone, means for the claim. Undefined: begin again. */
export const busy = async (database: SqlDatabase, table: Table, claim: Claim): Promise<Refused | undefined> => {
  const seen = await table.read(database, claim);
  return seen && (refusal(seen, claim) ?? { kind: 'in-progress', leaseLeft: 0, operationRef: seen.row.operationRef });
};

/** A transaction that has the key's row locked. */
export interface Locked<Tx> {
  readonly table: Table;
  readonly on: SqlExecutor;
  readonly tx: Tx;
  readonly seen: SeenRow;
  /** Notes that the run with this fence may have effects elsewhere. False: another one has noted that. */
  readonly note: (fence: number) => Promise<boolean>;
  /** Why a handler cannot announce them. Undefined: it can. */
  readonly barrier: string | undefined;
}

// The note was committed, and its run died, while the statement that locked the row was on its way with an older view.
const announcedElsewhere = (key: string): SamekeyError =>
  new SamekeyError('TRANSACTION_LOST', `Another run under key "${key}" announced an effect and died at the moment when this one began. All of this one is rolled back, and the key is in doubt.`);

/** Runs the handler under the lock. What it did stays only together with the settled row. */
export const runLocked = async <T, Tx>({ table, on, tx, seen, note, barrier }: Locked<Tx>, claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
  const { next, result } = claimRecord(unlocked(seen.row), claim, seen.now);
  if (result.kind !== 'won' || !next) {
    if (next) await table.replace(on, seen, table.columns(next));
    return result as Refused;
  }
  const { fence, attempt, operationRef } = result;
  let watching: Promise<WholeCheck> | undefined;
  let announced = false;
  const open = async (): Promise<Tx> => {
    await (watching ??= watchWhole(table, on, () => note(fence)));
    return tx;
  };
  // Where the row showed it, this claim runs in spite of it.
  const isKnown = seen.row.effectStarted;
  let isForeign = false;
  const startEffect = async (): Promise<void> => {
    if (barrier !== undefined) throw new SamekeyError('NOT_POSSIBLE', barrier);
    announced = true;
    isForeign = !(await note(fence)) && !isKnown;
    if (isForeign) throw announcedElsewhere(claim.key);
  };
  const ending = await work({ fence, attempt, operationRef, open, startEffect });
  if (isForeign) throw announcedElsewhere(claim.key);
  await (await watching)?.();
  const ensureSame = (): Promise<void> => ensureSameTransaction(table, on, seen.transaction, () => note(fence));
  if (watching && !ending.keep) {
    await ensureSame();
    throw new Undo({ ending, next, announced });
  }
  const held = seen.row.fence === 0 ? heldColumns(next) : table.columns(next);
  if (await table.replace(on, seen, { ...held, ...settledColumns(ending.settlement, table.dialect.later) }, !announced && !isKnown)) return { kind: 'ended', ending, operationRef };
  await ensureSame();
  throw new Error(`The row of key "${claim.key}" changed although it was locked. All was rolled back.`);
};

/** A transaction in which the key of a run that was undone can be locked again. */
export interface Undoing<Tx> {
  readonly database: SqlDatabase<Tx>;
  readonly table: Table;
  readonly claim: Claim;
  /** Locks the row, or inserts it. Undefined where another run has it and `waits` does not say to wait for that. */
  readonly relock: (on: SqlExecutor, waits: boolean) => Promise<SeenRow | undefined>;
}

/**
 * Settles a run whose transaction was rolled back. Between the two anybody could run, die or doubt: what this run came to
 * counts if it could still begin, or if nobody began since and the doubt is about its own effect. Undefined where another has
 * the key.
 */
const settleUndone = <T, Tx>({ database, table, claim, relock }: Undoing<Tx>, { ending, next, announced }: Finished<T>): Promise<Entered<T> | undefined> =>
  database.transaction(async on => {
    // Who sees an announcement does not run, but may be writing down its doubt.
    const seen = await relock(on, announced);
    if (!seen) return undefined;
    const change = claimRecord(unlocked(seen.row), claim, seen.now);
    const begun = announced && seen.row.fence < next.fence ? next : change.result.kind === 'won' && change.next;
    if (begun) await table.replace(on, seen, { ...table.columns(begun), ...settledColumns(ending.settlement, table.dialect.later) });
    else if (change.next) await table.replace(on, seen, table.columns(change.next));
    return begun ? { kind: 'ended', ending, operationRef: begun.operationRef } : (change.result as Refused);
  });

/** What became of a transaction whose work may have wanted it to be rolled back. */
export const undoable = async <T, Tx>(undoing: Undoing<Tx>, transaction: Promise<Entered<T> | undefined>): Promise<Entered<T> | undefined> => {
  try {
    return await transaction;
  } catch (error) {
    if (error instanceof Undo) return settleUndone(undoing, (error as Undo<T>).finished);
    throw error;
  }
};
