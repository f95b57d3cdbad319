import { NEVER, type HeadRef, type StoredHead } from './keystore/keystore.js';

/** What is known of an operation. `pending` and `in_doubt` are open: nobody may assume what became of them. */
export type State = 'pending' | 'succeeded' | 'rejected' | 'in_doubt' | 'cancelled';

/** Name, value; lower-case names, in the order of the wire. Plain data, because a store cannot clone `Headers`. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What is sent, frozen before the first send. The body bytes are the head's `request`. */
export interface SnapshotMeta {
  readonly method: string;
  readonly url: string;
  /** Non-credential headers, without content-type. */
  readonly headers: HeaderList;
  /** With the multipart boundary that the bytes were written with. */
  readonly contentType?: string | undefined;
  /** Kept where it is not `same-origin`: a resumed request needs the same cookies rule. */
  readonly credentials?: RequestCredentials | undefined;
  /** The caller asked the platform to follow redirects itself. */
  readonly follow?: true | undefined;
}

/** Why a settled operation has no answer to give back. */
export type Omission = 'too-large' | 'expired' | 'reconciled' | 'unavailable';

/** The answer that settled an operation. The body bytes are the head's `response`. */
export interface AnswerMeta {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  /** Without Set-Cookie. */
  readonly headers: HeaderList;
  readonly omitted?: Omission | undefined;
}

/** Why nobody resends a pending operation now. */
export type Parking = 'auth' | 'redirected' | 'offline';

/** Where a key came from. Only a random key that never left this store is known to be nowhere else. */
export type KeySource = 'derived' | 'random' | 'adopted';

/** Why a rejection is one: by an answer that is stored under the key, by one that may not be, before admission, or by reconcile. */
export type Refusal = 'stored' | 'answered' | 'not-admitted' | 'reconciled';

/** A generation that is over: its key is spent, what it proved is kept. */
export interface PastGeneration {
  readonly generation: number;
  readonly key: string;
  readonly fingerprint?: string | undefined;
  readonly state: State;
  readonly status?: number | undefined;
  /** A success that arrived after the generation was given up: two effects may exist. */
  readonly lateStatus?: number | undefined;
}

export interface Lease {
  readonly owner: string;
  /** ms since the epoch. */
  readonly until: number;
}

/**
 * The one row of an operation: its current generation and revision, and what is left of the past ones. Everything but
 * the two byte fields is plain JSON.
 */
export interface Head extends StoredHead {
  readonly name?: string | undefined;
  readonly generation: number;
  readonly revision: number;
  readonly key: string;
  readonly keySource: KeySource;
  /** The key may have been sent by someone who does not share this store: derived, adopted, or handed out. */
  readonly elsewhere: boolean;
  readonly state: State;
  /** Why it is in this state, in a word. */
  readonly reason?: string | undefined;
  readonly refusal?: Refusal | undefined;
  /** Missing while a key is only reserved, and after the operation is settled. */
  readonly snapshot?: SnapshotMeta | undefined;
  readonly fingerprint?: string | undefined;
  /** ms since the epoch, as all times here. */
  readonly createdAt: number;
  /** Set durably before the first byte may leave; cleared only by a driver that proved nothing left. */
  readonly firstSentAt?: number | undefined;
  readonly lastSentAt?: number | undefined;
  readonly settledAt?: number | undefined;
  /** ms the server promises to remember the key, counted from firstSentAt. */
  readonly keyWindow: number;
  /** HTTP sends, as far as they are known; one without a recorded outcome counts. */
  readonly attempts: number;
  /** An attempt may have reached the server and its whole answer is not known. */
  readonly ambiguous: boolean;
  /** A success began to arrive; only reconcile may call it rejected from then on. */
  readonly sawSuccess: boolean;
  readonly assumed?: true | undefined;
  readonly parked?: Parking | undefined;
  readonly nextAttemptAt?: number | undefined;
  readonly lease?: Lease | undefined;
  /** Grows with every claim; a driver with an older one is stale. */
  readonly fence: number;
  readonly answer?: AnswerMeta | undefined;
  /** A success that arrived for a rejected or cancelled operation: two effects may exist. */
  readonly lateStatus?: number | undefined;
  readonly past: readonly PastGeneration[];
}

/** The format that this version writes; a head with a higher one is left alone. */
export const HEAD_FORMAT = 1;

/** An answer with its bytes. */
export interface Answer {
  readonly meta: AnswerMeta;
  readonly body: ArrayBuffer | null;
}

/** In place of an answer that nobody has: the outcome is known by other means. */
export const NO_ANSWER: Answer = { meta: { status: 0, statusText: '', url: '', headers: [], omitted: 'reconciled' }, body: null };

/** What a driver knows of its attempts when it lets go. */
export interface Progress {
  readonly attempts: number;
  readonly ambiguous: boolean;
  readonly sawSuccess: boolean;
  readonly lastSentAt?: number | undefined;
}

/** A snapshot with its bytes and what it asks for. */
export interface Frozen {
  readonly snapshot: SnapshotMeta;
  readonly body: ArrayBuffer | null;
  readonly fingerprint: string;
}

/** Everything that can happen to a head. */
export type OperationEvent =
  /** Someone begins to drive: with a snapshot where the head has none or is to get another. */
  | { readonly type: 'claim'; readonly lease: Lease; readonly send: boolean }
  | { readonly type: 'renew'; readonly lease: Lease; readonly fence: number }
  | { readonly type: 'release'; readonly fence: number; readonly progress: Progress; readonly nextAttemptAt?: number | undefined; readonly parked?: Parking | undefined }
  | { readonly type: 'succeed'; readonly generation: number; readonly revision: number; readonly progress: Progress; readonly answer: Answer; readonly assumed?: true | undefined; readonly keep: boolean }
  | { readonly type: 'reject'; readonly fence: number; readonly progress: Progress; readonly answer: Answer; readonly refusal: Refusal; readonly reason: string }
  | { readonly type: 'doubt'; readonly fence?: number | undefined; readonly progress?: Progress | undefined; readonly reason: string; readonly askAt?: number | undefined }
  /** Doubt that nobody can end by calling again: what would be sent is not needed any more. */
  | { readonly type: 'abandon'; readonly reason: string }
  | { readonly type: 'cancel'; readonly progress?: Progress | undefined }
  | { readonly type: 'reconcile'; readonly applied: boolean; readonly answer: Answer }
  /** New bytes under the same key. */
  | { readonly type: 'revise'; readonly frozen: Frozen; readonly lease: Lease }
  /** The next key of the name. */
  | { readonly type: 'advance'; readonly frozen: Frozen; readonly lease: Lease; readonly key: string; readonly elsewhere: boolean }
  | { readonly type: 'hand-out' }
  | { readonly type: 'drop-answer' };

type EventOf<Type extends OperationEvent['type']> = Extract<OperationEvent, { type: Type }>;

interface Transition<Type extends OperationEvent['type']> {
  readonly from: readonly State[];
  /** undefined: refused, although the state would allow it. */
  readonly apply: (head: Head, event: EventOf<Type>, context: Context) => Partial<Head> | undefined;
}

/** What every transition may look at beside the head. */
export interface Context {
  readonly now: number;
  /** ms that an answer is kept. */
  readonly retention: number;
  /** ms that a named operation's tombstone is kept. */
  readonly nameRetention: number;
}

const held = (head: Head, fence: number): boolean => head.fence === fence && head.lease !== undefined;

const settled = (progress: Progress | undefined, now: number): Partial<Head> => ({
  ...progress,
  settledAt: now,
  lease: undefined,
  parked: undefined,
  nextAttemptAt: undefined,
  snapshot: undefined,
  request: null,
});

const answered = ({ meta, body }: Answer): Partial<Head> => ({ answer: meta, response: body });

const pastOf = (head: Head): PastGeneration => ({
  generation: head.generation,
  key: head.key,
  fingerprint: head.fingerprint,
  state: head.state,
  status: head.answer?.status,
  lateStatus: head.lateStatus,
});

/** The head as it was for an earlier generation, as far as that is kept. */
export const atGeneration = (head: Head, generation: number): Head => ({ ...head, ...(generation === head.generation ? {} : head.past.find(past => past.generation === generation)) });

/** A generation or revision starts clean, with its own firstSentAt. */
const afresh = (frozen: Frozen, lease: Lease, head: Head, now: number): Partial<Head> => ({
  state: 'pending',
  snapshot: frozen.snapshot,
  request: frozen.body,
  fingerprint: frozen.fingerprint,
  firstSentAt: now,
  lastSentAt: undefined,
  settledAt: undefined,
  attempts: 0,
  ambiguous: false,
  sawSuccess: false,
  reason: undefined,
  refusal: undefined,
  assumed: undefined,
  lateStatus: undefined,
  parked: undefined,
  nextAttemptAt: undefined,
  answer: undefined,
  response: null,
  lease,
  fence: head.fence + 1,
});

const succeed = (head: Head, event: EventOf<'succeed'>, now: number): Partial<Head> | undefined => {
  const { status } = event.answer.meta;
  if (event.generation !== head.generation) {
    return { past: head.past.map(past => (past.generation === event.generation ? { ...past, lateStatus: status } : past)) };
  }
  if (head.state === 'succeeded') return undefined;
  if (head.state === 'rejected' || head.state === 'cancelled') return { lateStatus: status };
  if (event.revision !== head.revision) return { state: 'in_doubt', reason: 'an earlier body under the same key was applied', lateStatus: status, lease: undefined };
  const answer = event.keep ? event.answer : { meta: { ...event.answer.meta, omitted: event.answer.meta.omitted ?? 'expired' as const }, body: null };
  return { ...settled(event.progress, now), state: 'succeeded', reason: undefined, assumed: event.assumed, ...answered(answer) };
};

/**
 * The one table of what may happen in which state. A transition that is not here is refused, and the driver that
 * wanted it tells its caller what the record says instead.
 */
const TRANSITIONS: { readonly [Type in OperationEvent['type']]: Transition<Type> } = {
  claim: {
    from: ['pending'],
    apply: (head, { lease, send }, { now }) => ({
      lease,
      fence: head.fence + 1,
      parked: undefined,
      // A lease that was not given back hides an attempt without a recorded outcome.
      ambiguous: head.ambiguous || head.lease !== undefined,
      attempts: head.attempts + (head.lease === undefined ? 0 : 1),
      firstSentAt: head.firstSentAt ?? (send ? now : undefined),
    }),
  },
  renew: { from: ['pending'], apply: (head, { lease, fence }) => (held(head, fence) ? { lease } : undefined) },
  release: {
    from: ['pending'],
    apply: (head, { fence, progress, nextAttemptAt, parked }) =>
      held(head, fence)
        ? { ...progress, nextAttemptAt, parked, lease: undefined, firstSentAt: progress.lastSentAt === undefined && !progress.ambiguous ? undefined : head.firstSentAt }
        : undefined,
  },
  // Also where it has succeeded since: evidence may be of a generation before.
  succeed: { from: ['pending', 'in_doubt', 'rejected', 'cancelled', 'succeeded'], apply: (head, event, { now }) => succeed(head, event, now) },
  reject: {
    from: ['pending'],
    apply: (head, { fence, progress, answer, refusal, reason }, { now }) =>
      held(head, fence) ? { ...settled(progress, now), state: 'rejected', refusal, reason, ...answered(answer) } : undefined,
  },
  doubt: {
    from: ['pending', 'in_doubt'],
    apply: (head, { fence, progress, reason, askAt }) =>
      fence === undefined || held(head, fence)
        ? { ...progress, state: 'in_doubt', reason, lease: undefined, parked: undefined, nextAttemptAt: askAt }
        : undefined,
  },
  abandon: {
    from: ['pending'],
    apply: (_, { reason }) => ({ state: 'in_doubt', reason, request: null, snapshot: undefined, lease: undefined, parked: undefined, nextAttemptAt: undefined }),
  },
  cancel: {
    from: ['pending'],
    apply: (_, { progress }, { now }) => ({ ...settled(progress, now), state: 'cancelled', firstSentAt: undefined }),
  },
  reconcile: {
    from: ['pending', 'in_doubt'],
    apply: (_, { applied, answer }, { now }) => ({
      ...settled(undefined, now),
      ...(applied ? { state: 'succeeded' } : { state: 'rejected', refusal: 'reconciled' }),
      reason: 'reconciled',
      ...answered(answer),
    }),
  },
  revise: {
    from: ['pending', 'rejected', 'cancelled'],
    apply: (head, { frozen, lease }, { now }) => ({ ...afresh(frozen, lease, head, now), revision: head.snapshot || head.settledAt !== undefined ? head.revision + 1 : head.revision }),
  },
  advance: {
    from: ['pending', 'rejected'],
    apply: (head, { frozen, lease, key, elsewhere }, { now }) => ({
      ...afresh(frozen, lease, head, now),
      past: [...head.past, pastOf(head)],
      generation: head.generation + 1,
      revision: 1,
      key,
      elsewhere,
    }),
  },
  'hand-out': { from: ['pending', 'succeeded', 'rejected', 'in_doubt', 'cancelled'], apply: () => ({ elsewhere: true }) },
  'drop-answer': {
    from: ['succeeded', 'rejected', 'cancelled'],
    apply: head => ({ response: null, ...(head.answer ? { answer: { ...head.answer, omitted: head.answer.omitted ?? 'expired', headers: [] } } : {}) }),
  },
};

const isOpen = (state: State): boolean => state === 'pending' || state === 'in_doubt';

const dueOf = (head: Head, { retention, nameRetention }: Context): number => {
  if (head.state === 'in_doubt') return head.nextAttemptAt ?? NEVER;
  if (head.state === 'pending') return head.parked || !head.snapshot ? NEVER : (head.nextAttemptAt ?? head.createdAt);
  const keptAnswer = head.answer !== undefined && head.answer.omitted === undefined;
  const settledAt = head.settledAt ?? head.createdAt;
  return settledAt + (keptAnswer || head.name === undefined ? retention : Math.max(nameRetention, head.keyWindow));
};

/** The head with the fields that follow from the others. */
export const written = (head: Head, context: Context): Head => ({
  ...head,
  shelf: isOpen(head.state) ? 'open' : 'settled',
  due: dueOf(head, context),
  writtenAt: context.now,
});

/** What the head becomes; undefined when the event is not allowed in its state, or comes from a driver that was fenced off. */
export const transition = (head: Head, event: OperationEvent, context: Context): Head | undefined => {
  const { from, apply } = TRANSITIONS[event.type] as Transition<OperationEvent['type']>;
  const changes = from.includes(head.state) ? apply(head, event, context) : undefined;
  return changes && written({ ...head, ...changes, version: head.version + 1 }, context);
};

/** Whether a record may be driven by this version at all. */
export const isQuarantined = (head: Head): boolean => head.unreadable !== undefined || head.format > HEAD_FORMAT;

/** Operations that nobody can name again: they are resent only while their caller waits. */
export const isAnonymous = (head: Pick<Head, 'name'>): boolean => head.name === undefined;

/** Rows that are no operations: what the client keeps for itself. */
export const isMeta = (ref: Pick<HeadRef, 'id'>): boolean => ref.id.startsWith('meta:');

export const refOf = ({ client, scope, id }: HeadRef): HeadRef => ({ client, scope, id });
