import { isTransactionLost, NoTransactionError } from './errors.js';
import type { DedupStore } from './store.js';

/** A transaction that opens when it is first asked for, and stays open until the run that asked says how it ends. */
export interface EffectsTransaction<Tx> {
  readonly opened: boolean;
  open(): Promise<Tx>;
  /** Commits after `last`, which runs inside; rolls back, and rejects with its error, when that rejects. */
  commit(last: (settle: DedupStore['settle']) => Promise<void>): Promise<void>;
  /** Never rejects: what is not committed is rolled back, by a lost connection too. False: some of it was committed before. */
  rollBack(): Promise<boolean>;
}

const ROLLED_BACK = Symbol('rolled back on purpose');

const noTransaction = (): NoTransactionError =>
  new NoTransactionError('This dedup store has no transactions. Take a store on the SQL database that your effects are in, or call effectStarted() before an effect.');

/** What a handler hears that asks for its transaction after it has ended: the connection belongs to somebody else by then. */
export const transactionOver = (): NoTransactionError =>
  new NoTransactionError('The run has ended, and its transaction with it. Do what belongs to the answer before the handler returns; for what comes later open a transaction on your database.');

type Last = (settle: DedupStore['settle']) => Promise<void>;

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason: unknown) => void;
}

const deferred = <T>(): Deferred<T> => {
  let settle!: Omit<Deferred<T>, 'promise'>;
  const promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle };
};

/** The transaction of one run. */
export const effectsTransaction = <Tx>(store: DedupStore<Tx>): EffectsTransaction<Tx> => {
  const end = deferred<Last>();
  let transaction: { readonly tx: Promise<Tx>; readonly done: Promise<void> } | undefined;
  let isOver = false;
  const conclude = (last: Last): void => {
    isOver = true;
    end.resolve(last);
  };

  const begin = (): { tx: Promise<Tx>; done: Promise<void> } => {
    const opened = deferred<Tx>();
    const done = store.transact
      ? store.transact(async (tx, settle) => {
          opened.resolve(tx);
          const last = await end.promise;
          await last(settle);
        })
      : Promise.reject(noTransaction());
    done.catch(opened.reject);
    // A handler need not wait for it; its failure is heard at the end in any case.
    opened.promise.catch(() => {});
    return { tx: opened.promise, done };
  };

  return {
    get opened() {
      return transaction !== undefined;
    },
    open: () => (isOver ? Promise.reject(transactionOver()) : (transaction ??= begin()).tx),
    async commit(last) {
      conclude(last);
      await transaction?.done;
    },
    async rollBack() {
      conclude(() => Promise.reject(ROLLED_BACK));
      const failure: unknown = await transaction?.done.catch((error: unknown) => error);
      return !isTransactionLost(failure);
    },
  };
};
