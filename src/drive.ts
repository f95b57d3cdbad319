import type { ReceivedAnswer } from './answer.js';
import type { Clock } from './clock.js';
import type { Events } from './events.js';
import type { Answer, Head, HeaderList, Progress } from './operation.js';
import type { Records } from './records.js';
import type { RetryPolicy } from './retry.js';
import type { Accept, Send, Sent } from './send.js';

/** What the application says of an operation in doubt; a Response is "applied", with its answer. */
export type Reconciliation = 'applied' | 'not-applied' | 'unknown' | Response;

/** One drive of one head, by a call or by a resume pass. The head is claimed already. */
export interface Drive {
  readonly head: Head;
  /** Credentials, fetch options and rights of the call that is being answered; a resume pass has none. */
  readonly live?: { readonly credentials: HeaderList; readonly init?: RequestInit | undefined; readonly accept?: Accept | undefined; readonly ownScope: boolean } | undefined;
  readonly policy: RetryPolicy;
  /** ms per attempt. */
  readonly timeout: number;
  /** Whether anybody still waits; nothing is resent when nobody does. */
  readonly wanted: () => boolean;
  /** ms until the last of those who wait gives up. */
  readonly left: () => number;
  /** Aborts when nobody waits any more. */
  readonly idle: AbortSignal;
}

/** What came of a drive. Every head in it is what the store holds now, as far as it could be told. */
export type DriveResult =
  | { readonly kind: 'answered'; readonly head: Head; readonly answer: ReceivedAnswer; readonly replayed: boolean; readonly durable: boolean }
  | { readonly kind: 'pending'; readonly head: Head; readonly reason: string; readonly answer?: ReceivedAnswer | undefined; readonly error?: unknown }
  /** `error`: what `onInDoubt` threw when it was asked. */
  | { readonly kind: 'in-doubt'; readonly head: Head; readonly answer?: ReceivedAnswer | undefined; readonly error?: unknown }
  /** The key is spent on an earlier body, and the server or its history says that the next one is safe. The lease is still held. */
  | { readonly kind: 'spent'; readonly head: Head }
  /** Fenced off: somebody else drives or has settled it; the record speaks. */
  | { readonly kind: 'lost'; readonly head: Head | undefined }
  | { readonly kind: 'failed'; readonly head: Head; readonly error: unknown };

/** What every drive of a client shares. */
export interface DriverOptions {
  readonly records: Records;
  readonly send: Send;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
  /** ms. */
  readonly lease: number;
  /** Bytes. */
  readonly maxAnswerBytes: number;
  /** ms. */
  readonly maxServerTime: number;
  /** Aborts when the client closes. */
  readonly closing: AbortSignal;
  /** Headers that say who sends, for the scope of the record. */
  readonly authorize?: (context: { readonly scope: string }) => HeadersInit | Promise<HeadersInit>;
  /** Whether this process may act for a scope now; `given`: the call itself said whose it is. */
  readonly owns: (scope: string, given?: boolean) => boolean | Promise<boolean>;
  /** Remembers what was parked here: another process, which may have other credentials, tries once. */
  readonly parked: (head: Head) => void;
  readonly onInDoubt?: (head: Head, answer: ReceivedAnswer | undefined) => Reconciliation | Promise<Reconciliation>;
  readonly toAnswer: (response: Response) => Promise<Answer>;
  /** Credentials among the client's own default headers; a resumed request has no others. */
  readonly defaults: HeaderList;
  /** Hears of every head that is settled. */
  readonly settled: (head: Head) => void;
}

/** What one drive has gone through. The one mutable thing of a drive. */
export interface Run {
  readonly drive: Drive;
  head: Head;
  progress: Progress;
  retries: number;
  waits: number;
  conflictSince: number | undefined;
  refreshed: boolean;
  /** Fenced off: what this driver learns counts only where it is evidence. */
  lost: boolean;
  last: Sent | undefined;
}

/** The drive ends, the operation does not. */
export const pendingOf = ({ head, last }: Run, reason: string): DriveResult => ({ kind: 'pending', head, reason, answer: last?.answer, error: last?.error });

export const startRun = (drive: Drive): Run => {
  const { attempts, ambiguous, sawSuccess, lastSentAt } = drive.head;
  const progress: Progress = { attempts, ambiguous, sawSuccess, lastSentAt };
  return { drive, head: drive.head, progress, retries: 0, waits: 0, conflictSince: undefined, refreshed: false, lost: false, last: undefined };
};
