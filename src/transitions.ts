import { NEVER } from './keystore/keystore.js';
import type { Answer, Frozen, Head, Lease, Parking, PastGeneration, Progress, Refusal, State } from './operation.js';

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
