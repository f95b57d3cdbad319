import type { Isolation, SqlExecutor } from '../../../sql/database.js';
import type { Claim } from '../../record.js';

/**
 * How runs hold their key. `tx`: by the lock of its row, in the transaction of the handler's effects; a duplicate hears
 * 409 at once, and a worker that dies frees the key with its connection. `single-tx`: claim, effects and answer in one
 * transaction; duplicates wait for it. `lease`: by a lease that is renewed, for effects that are elsewhere.
 */
export type SqlMode = 'tx' | 'single-tx' | 'lease';

export interface SqlStoreOptions {
  readonly mode: SqlMode;
  /** Of the transactions that handlers run in. Undefined: the database's own. */
  readonly isolation: Isolation | undefined;
  /** ms that a duplicate waits in `single-tx` mode before it is told that the first one is in progress. */
  readonly lockTimeout?: number | undefined;
  /**
   * Where renewals and the notes of effects go, which a run needs while it holds a connection already. Give it a pool of
   * its own when more handlers may run at once than the first one has connections. @default the database itself
   */
  readonly control?: SqlExecutor | undefined;
}

/** Whether nothing but the absence of a row decides about the claim. */
export const isPlain = ({ onExpired, keyMadeAt }: Claim): boolean => onExpired === 'fresh' || keyMadeAt === undefined;
