import type { OperationInfo } from './errors.js';
import type { Head, Parking } from './operation.js';

/** What happens to operations, for logs and metrics. A listener that throws is ignored. */
export interface Listeners {
  /** One HTTP send begins. */
  attempt?(event: { readonly operation: OperationInfo; readonly attempt: number }): void;
  /** A resend is due after `delay` ms: because of `reason`, or to ask again about a request that is still running. */
  retry?(event: { readonly operation: OperationInfo; readonly action: 'retry' | 'wait'; readonly delay: number; readonly reason: string }): void;
  /** The answer was given before, by the server or from the key store. */
  replayed?(event: { readonly operation: OperationInfo; readonly by: 'server' | 'keystore' }): void;
  /** Succeeded or rejected. */
  settled?(event: { readonly operation: OperationInfo }): void;
  /** It came in doubt; reason `purged`: an anonymous one was in doubt for longer than `nameRetention`, and its record is gone. */
  inDoubt?(event: { readonly operation: OperationInfo; readonly reason: string }): void;
  parked?(event: { readonly operation: OperationInfo; readonly as: Parking }): void;
  /** An operation of somebody else was met and left alone. */
  foreign?(event: { readonly operation: OperationInfo }): void;
  /** A success came for an operation that was given up: two effects may exist. A person should look. */
  conflict?(event: { readonly operation: OperationInfo; readonly status: number | undefined }): void;
  /** A record was met that cannot be read, or must not be sent as it is. */
  quarantined?(event: { readonly operation: OperationInfo; readonly reason: string }): void;
  /** The store failed after the fact; the answer is right, but not recorded. */
  storeFailure?(event: { readonly operation: OperationInfo | undefined; readonly error: unknown }): void;
}

/** What there is to know of a call beyond its record. */
export interface InfoExtras {
  readonly replayed?: OperationInfo['replayed'];
  readonly durable?: boolean;
}

export const infoOf = (head: Head, { replayed = false, durable = true }: InfoExtras = {}): OperationInfo => ({
  client: head.client,
  scope: head.scope,
  name: head.name,
  generation: head.generation,
  key: head.key,
  state: head.state,
  attempts: head.attempts,
  phase: head.state === 'succeeded' || head.state === 'rejected' ? 'answered' : head.firstSentAt === undefined ? 'not-sent' : 'unknown',
  replayed,
  durable,
  assumed: head.assumed === true,
});

/** The listeners as the client calls them: with heads, and never throwing. */
export interface Events {
  attempt(head: Head, attempt: number): void;
  retry(head: Head, action: 'retry' | 'wait', delay: number, reason: string): void;
  replayed(head: Head, by: 'server' | 'keystore'): void;
  settled(head: Head, durable: boolean): void;
  inDoubt(head: Head): void;
  parked(head: Head, as: Parking): void;
  foreign(head: Head): void;
  conflict(head: Head): void;
  quarantined(head: Head, reason: string): void;
  storeFailure(head: Head | undefined, error: unknown): void;
}

export const createEvents = (listeners: Listeners): Events => {
  const emit = <Name extends keyof Listeners>(name: Name, event: () => Parameters<NonNullable<Listeners[Name]>>[0]): void => {
    try {
      const result = (listeners[name] as ((event: unknown) => unknown) | undefined)?.call(listeners, event());
      // Nobody else would hear of its failure, and some platforms end a process for that.
      if (result instanceof Promise) result.catch(() => undefined);
    } catch {
      // A listener watches; it must not change what happens.
    }
  };
  return {
    attempt: (head, attempt) => emit('attempt', () => ({ operation: infoOf(head), attempt })),
    retry: (head, action, delay, reason) => emit('retry', () => ({ operation: infoOf(head), action, delay, reason })),
    replayed: (head, by) => emit('replayed', () => ({ operation: infoOf(head, { replayed: by }), by })),
    settled: (head, durable) => emit('settled', () => ({ operation: infoOf(head, { durable }) })),
    inDoubt: head => emit('inDoubt', () => ({ operation: infoOf(head), reason: head.reason ?? '' })),
    parked: (head, as) => emit('parked', () => ({ operation: infoOf(head), as })),
    foreign: head => emit('foreign', () => ({ operation: infoOf(head) })),
    conflict: head => emit('conflict', () => ({ operation: infoOf(head), status: head.lateStatus })),
    quarantined: (head, reason) => emit('quarantined', () => ({ operation: infoOf(head), reason })),
    storeFailure: (head, error) => emit('storeFailure', () => ({ operation: head && infoOf(head), error })),
  };
};
