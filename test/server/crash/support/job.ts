import type { Place } from '../../../support/sql-servers.js';

/** Where a request can be made to stand still for ever. */
export type Step =
  | 'after-claim' // the handler has begun, nothing is done
  | 'after-announcement' // an effect elsewhere is announced, and not done
  | 'after-effect' // the business row is written
  | 'before-record' // the handler has answered, the record does not say so
  | 'before-commit' // the record says so in a transaction that is open
  | 'after-record'; // all is committed, the client has no answer

/** How the handler of an endpoint has its effect, and what holds the key meanwhile. */
export type Endpoint =
  | 'tx' // in the transaction that holds the key
  | 'tx-elsewhere' // announced, while that transaction is open
  | 'lease' // in a transaction that records the answer, under a lease
  | 'lease-elsewhere' // announced, under a lease; nobody says that nothing happens before
  | 'lease-marked'; // the same, and nothing happens before the announcement

/** Which database a worker uses. */
export type WorkerDatabase = { readonly kind: 'postgres' | 'mysql'; readonly place: Place } | { readonly kind: 'sqlite'; readonly path: string };

/** What a worker process is told. */
export interface Job {
  readonly database: WorkerDatabase;
  /** Most of them at once; servers have few, and they are shared. */
  readonly connections: number;
  /** ms */
  readonly lease: number;
}

/** Names the step at which a request stands still. */
export const STOP_HEADER = 'x-stop-at';
