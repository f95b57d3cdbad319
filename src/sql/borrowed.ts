/** Opens a transaction, runs the work in it, and ends it: a method of a library. What it resolves with does not matter. */
export type Begin<Tx> = (work: (tx: Tx) => Promise<unknown>) => PromiseLike<unknown>;

/**
 * Work in a transaction that a library opens and ends. What the work came to is said as it is: libraries wrap it, and
 * replace it by the failure of a rollback. They may also give up while the work goes on; this waits for it, so that
 * nothing runs in a transaction that its caller believes to be over.
 */
export const runWithin = async <T, Tx>(begin: Begin<Tx>, work: (tx: Tx) => Promise<T>): Promise<T> => {
  let running: Promise<T> | undefined;
  try {
    await begin(tx => (running = work(tx)));
  } catch (error) {
    await running;
    throw error;
  }
  return running as unknown as Promise<T>;
};
