import { SamekeyError, type SamekeyErrorOptions } from '../errors.js';

/** Thrown by a handler: nothing happened (or all was undone), so the same key may run again, `effectStarted()` or not. */
export class RetryableError extends SamekeyError<'RETRYABLE'> {
  override readonly name: string = 'RetryableError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('RETRYABLE', message, options);
  }
}

/** Somebody else may hold the key by now. It is the reason of a run's `signal`, and what `effectStarted()` rejects with. */
export class LeaseLostError extends SamekeyError<'LEASE_LOST'> {
  override readonly name: string = 'LeaseLostError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('LEASE_LOST', message, options);
  }
}

/** The handler asked for the transaction that records its answer, and the store has none, or the run is over. */
export class NoTransactionError extends SamekeyError<'NO_TRANSACTION'> {
  override readonly name: string = 'NoTransactionError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('NO_TRANSACTION', message, options);
  }
}

/** A transaction ended under its handler, and what came after that was committed statement by statement. */
export const isTransactionLost = (error: unknown): boolean => (error as { code?: unknown } | null | undefined)?.code === 'TRANSACTION_LOST';

/** By its code, because it may come from another copy of the package. */
export const isRetryable = (error: unknown): boolean => (error as { code?: unknown } | null | undefined)?.code === 'RETRYABLE';
