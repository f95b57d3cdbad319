import { SamekeyError } from '../../../errors.js';
import type { SqlDatabase, SqlExecutor } from '../../../sql/database.js';
import { raw, sql, type Statement } from '../../../sql/statement.js';
import { hasCode } from '../../contention.js';
import { claimRecord, NO_LEASE, unlocked, type Claim, type ClaimResult, type DedupRecord } from '../../record.js';
import type { DedupStore, Ending, Entered, Entry } from '../../store.js';
import { isPlain, type SqlStoreOptions } from './mode.js';
import { columnsOf, settledColumns } from './row.js';
import type { SeenRow, Table } from './table.js';

type Refused = Exclude<ClaimResult, { kind: 'won' }>;
type Work<Tx, T> = (entry: Entry<Tx>) => Promise<Ending<T>>;

/** Times that a row vanishes (a purge) between its insert and its lock before that is called a failure. */
const MAX_ENTRIES = 10;

const SAVEPOINT = raw('SAVEPOINT samekey_effects');
const RELEASE = raw('RELEASE SAVEPOINT samekey_effects');
const UNDO = raw('ROLLBACK TO SAVEPOINT samekey_effects');

/** A row that says only that the key was seen. Nobody holds it: to run is to lock it. */
const blank = ({ scope, key, fingerprint, operationRef, keyRetention }: Claim): DedupRecord => ({
  scope, key, state: 'in_progress', fingerprint, owner: '', fence: 0, attempts: 0, leaseUntil: NO_LEASE, effectStarted: false, operationRef,
  firstSeenAt: 0, keyExpiresAt: keyRetention,
});

const insertBlank = (on: SqlExecutor, table: Table, claim: Claim): Promise<boolean> => {
  const { dialect } = table;
  return table.insert(on, { ...columnsOf(blank(claim), dialect.later), lease_until: dialect.time(NO_LEASE) });
};

/** What is decided without a lock and without a write; undefined where the lock decides. */
const refusal = ({ row, now }: SeenRow, claim: Claim): Refused | undefined => {
  const { next, result } = claimRecord(row, claim, now);
  return next || result.kind === 'won' ? undefined : result;
};

/** The right to run and, once the handler asks for it, its transaction: from there on all can be undone but the lock. */
const entryOf = <Tx>(table: Table, on: SqlExecutor, tx: Tx, open: { used: boolean }, entry: Omit<Entry<Tx>, 'open'>): Entry<Tx> => {
  let opening: Promise<Tx> | undefined;
  const savepoint = async (): Promise<Tx> => {
    await table.run(on, SAVEPOINT);
    open.used = true;
    return tx;
  };
  return { ...entry, open: () => (opening ??= savepoint()) };
};

// The note would outlive a rollback that takes the record itself away, and nobody could resolve it.
const noNote = (): SamekeyError =>
  new SamekeyError('NOT_POSSIBLE', "effectStarted() needs a record that is committed before the effect, which 'single-tx' has not. Use mode: 'tx' for handlers with effects elsewhere.");

/** Makes the two kinds of transaction in which a handler runs. */
export const entering = <Tx>(database: SqlDatabase<Tx>, table: Table, { mode, isolation, lockTimeout }: SqlStoreOptions): NonNullable<DedupStore<Tx>['enter']> => {
  const { dialect } = table;

  /** Runs the handler, under the lock that `on` has, and settles. */
  const runLocked = async <T>(on: SqlExecutor, tx: Tx, seen: SeenRow, claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
    const { next, result } = claimRecord(unlocked(seen.row), claim, seen.now);
    if (result.kind !== 'won' || !next) {
      if (next) await table.replace(on, seen, table.columns(next));
      return result as Refused;
    }
    const effects = { used: false };
    const { fence, attempt, operationRef } = result;
    const startEffect = (): Promise<void> => (mode === 'tx' ? table.note(database, claim, fence) : Promise.reject(noNote()));
    const ending = await work(entryOf(table, on, tx, effects, { fence, attempt, operationRef, startEffect }));
    // A release fails where the transaction is not whole any more, so that its end is not taken for success.
    if (effects.used) await table.run(on, ending.keep ? RELEASE : UNDO);
    const columns = { ...table.columns(next), ...settledColumns(ending.settlement, dialect.later) };
    if (!(await table.replace(on, seen, columns))) throw new Error(`The row of key "${claim.key}" changed although it was locked. All was rolled back.`);
    return { kind: 'ended', ending, operationRef };
  };

  const lockAndRun = <T>(claim: Claim, work: Work<Tx, T>, lock: Statement): Promise<Entered<T> | undefined> =>
    database.transaction(async (on, tx) => {
      const seen = await table.lock(on, claim, lock);
      return seen && runLocked(on, tx, seen, claim, work);
    }, { isolation });

  /** What a key that is locked by somebody else, or gone, means for the claim. Undefined: begin again. */
  const busy = async (claim: Claim): Promise<Refused | undefined> => {
    const seen = await table.read(database, claim);
    return seen && (refusal(seen, claim) ?? { kind: 'in-progress', leaseLeft: 0, operationRef: seen.row.operationRef });
  };

  const lookFirst = async (claim: Claim): Promise<Refused | undefined> => {
    const seen = await table.read(database, claim);
    if (seen) return refusal(seen, claim);
    const { result } = claimRecord(undefined, claim, await table.now(database));
    return result.kind === 'won' ? undefined : result;
  };

  const enterTx = async <T>(claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
    const looks = dialect.insertWaits || !isPlain(claim);
    for (let entries = 0; entries < MAX_ENTRIES; entries += 1) {
      const early = looks ? await lookFirst(claim) : undefined;
      if (early) return early;
      const first = await insertBlank(database, table, claim);
      const known = first || looks ? undefined : await lookFirst(claim);
      if (known) return known;
      const entered = (await lockAndRun(claim, work, dialect.skipLocked)) ?? (await busy(claim));
      if (entered) return entered;
    }
    throw new Error(`The row of key "${claim.key}" vanished ${MAX_ENTRIES} times before it could be locked. Is something else deleting from the table?`);
  };

  const enterSingleTx = async <T>(claim: Claim, work: Work<Tx, T>): Promise<Entered<T>> => {
    const timeout = dialect.lockTimeout;
    if (!timeout) throw new TypeError("This database has no lock timeout for one transaction, so mode 'single-tx' is not possible. Use 'tx'.");
    let began = false;
    try {
      return await database.transaction(async (on, tx) => {
        await table.run(on, timeout.set(lockTimeout));
        await insertBlank(on, table, claim);
        const seen = await table.lock(on, claim, sql`FOR UPDATE`);
        await table.run(on, timeout.reset);
        if (!seen) throw new Error(`The row of key "${claim.key}" cannot be seen by the transaction that inserted it.`);
        began = true;
        return runLocked(on, tx, seen, claim, work);
      }, { isolation: 'read committed' });
    } catch (error) {
      if (began || !hasCode(error, timeout.exceeded)) throw error;
      return (await busy(claim)) ?? { kind: 'in-progress', leaseLeft: 0, operationRef: claim.operationRef };
    }
  };

  return mode === 'tx' ? enterTx : enterSingleTx;
};
