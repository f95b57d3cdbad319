import type { ReceivedAnswer } from './answer.js';
import { pendingOf, type DriveResult, type DriverOptions, type Reconciliation, type Run } from './drive.js';
import { atGeneration, isAnonymous, NO_ANSWER, type Answer, type Head, type Omission, type Parking, type Refusal, type State } from './operation.js';
import type { Applied } from './records.js';
import type { Sent } from './send.js';
import { within } from './within.js';

/** How drives end: each function writes what came of one, and says what its caller learns. */
export interface Settlement {
  readonly succeed: (run: Run, sent: Sent, answer: ReceivedAnswer, assumed: boolean) => Promise<DriveResult>;
  readonly reject: (run: Run, sent: Sent, answer: ReceivedAnswer, refusal: Refusal, reason: string) => Promise<DriveResult>;
  readonly doubt: (run: Run, reason: string) => Promise<DriveResult>;
  /** Stops trying: the operation stays pending, due again after `delay` ms, or parked. */
  readonly pend: (run: Run, reason: string, delay: number | undefined, parked?: Parking) => Promise<DriveResult>;
  /** Gives the lease back. Anonymous operations without effect end here: nobody could ask for them again. */
  readonly letGo: (run: Run, nextAttemptAt: number | undefined, parked?: Parking) => Promise<void>;
  /** Asks the application about an operation in doubt; undefined when it does not know (yet). */
  readonly reconcile: (head: Head, answer: ReceivedAnswer | undefined) => Promise<DriveResult | undefined>;
}

const ask = async (onInDoubt: NonNullable<DriverOptions['onInDoubt']>, head: Head, answer: ReceivedAnswer | undefined): Promise<Reconciliation> => onInDoubt(head, answer);

const omit = (answer: ReceivedAnswer, omitted: Omission, status = answer.meta.status): Answer => ({ meta: { ...answer.meta, status, omitted }, body: null });

/** The answer as it is stored. */
const toStored = (answer: ReceivedAnswer, { outcome }: Sent, maxBytes: number): Answer => {
  if (outcome.kind === 'answer' && outcome.meanings.has('result-unavailable')) return omit(answer, 'unavailable', outcome.originalStatus);
  return (answer.body?.byteLength ?? 0) > maxBytes ? omit(answer, 'too-large') : { meta: answer.meta, body: answer.body };
};

export const createSettlement = (options: DriverOptions): Settlement => {
  const { records, events, maxAnswerBytes, maxServerTime } = options;

  /** Bookkeeping after the fact: a failure is told, and does not change what the caller learns. Whether a record says it now. */
  const note = async (run: Run, write: () => Promise<Applied>): Promise<boolean> => {
    try {
      const { done, head } = await write();
      if (head) run.head = head;
      if (!done) run.lost = true;
      return head !== undefined;
    } catch (error) {
      events.storeFailure(run.head, error);
      return false;
    }
  };

  const letGo: Settlement['letGo'] = async (run, nextAttemptAt, parked) => {
    const { head, progress } = run;
    const forgettable = isAnonymous(head) && !progress.ambiguous && !progress.sawSuccess;
    await note(run, () =>
      forgettable
        ? records.apply(head, { type: 'cancel', progress }, 'relaxed')
        : records.apply(head, { type: 'release', fence: head.fence, progress, nextAttemptAt, parked }),
    );
    if (!parked || forgettable) return;
    options.parked(run.head);
    events.parked(run.head, parked);
  };

  const pend: Settlement['pend'] = async (run, reason, delay, parked) => {
    await letGo(run, delay === undefined ? undefined : records.now() + delay, parked);
    return run.lost ? { kind: 'lost', head: run.head } : pendingOf(run, reason);
  };

  const conclude = async (run: Run, sent: Sent, answer: ReceivedAnswer, state: State, write: () => Promise<Applied>): Promise<DriveResult> => {
    const { generation } = run.head;
    const durable = await note(run, write);
    // The caller learns what the answer proves, also where the record could not be told, or was forgotten.
    if (!durable) run.head = { ...run.head, state };
    const mine = atGeneration(run.head, generation);
    if (mine.lateStatus !== undefined) events.conflict(mine);
    if (run.head.state !== state || run.head.generation !== generation) return { kind: 'lost', head: run.head };
    const replayed = sent.outcome.kind === 'answer' && sent.outcome.meanings.has('replayed');
    if (replayed) events.replayed(run.head, 'server');
    events.settled(run.head, durable);
    options.settled(run.head);
    return { kind: 'answered', head: run.head, answer, replayed, durable };
  };

  const succeed: Settlement['succeed'] = (run, sent, answer, assumed) => {
    const { head, progress, drive } = run;
    const { generation, revision } = head;
    const stored = toStored(answer, sent, maxAnswerBytes);
    // Whoever waits for an anonymous operation gets the answer now, and nobody can ask for it later.
    const keep = !isAnonymous(head) || !drive.wanted() || head.keySource === 'adopted';
    return conclude(run, sent, answer, 'succeeded', () =>
      records.apply(head, { type: 'succeed', generation, revision, progress, answer: stored, assumed: assumed || undefined, keep }, 'relaxed'),
    );
  };

  const reject: Settlement['reject'] = (run, sent, answer, refusal, reason) => {
    const { head, progress } = run;
    const stored = toStored(answer, sent, maxAnswerBytes);
    // Durable before the name is free for the next attempt.
    return conclude(run, sent, answer, 'rejected', () => records.apply(head, { type: 'reject', fence: head.fence, progress, answer: stored, refusal, reason }));
  };

  const reconcile: Settlement['reconcile'] = async (head, answer) => {
    let verdict: Reconciliation | undefined;
    try {
      // It may take its time, but not longer than the client lives.
      verdict = options.onInDoubt && (await within({ clock: options.clock, ms: Infinity, expired: () => undefined, signal: options.closing }, ask(options.onInDoubt, head, answer)));
    } catch (error) {
      return { kind: 'in-doubt', head, answer, error };
    }
    const quiet = records.now() >= (head.lastSentAt ?? head.createdAt) + maxServerTime;
    if (verdict === undefined || verdict === 'unknown' || (verdict === 'not-applied' && !quiet)) return undefined;
    const supplied = verdict instanceof Response ? await options.toAnswer(verdict) : NO_ANSWER;
    const { done, head: now } = await records.apply(head, { type: 'reconcile', applied: verdict !== 'not-applied', answer: supplied });
    if (done && now) events.settled(now, true);
    return { kind: 'lost', head: now };
  };

  const doubt: Settlement['doubt'] = async (run, reason) => {
    const { head, progress, last } = run;
    const askAt = options.onInDoubt && (progress.lastSentAt ?? records.now()) + maxServerTime;
    await note(run, () => records.apply(head, { type: 'doubt', fence: head.fence, progress, reason, askAt }));
    if (run.lost) return { kind: 'lost', head: run.head };
    // The caller must not hear anything better than the truth when the record could not be told.
    if (run.head.state !== 'in_doubt') run.head = { ...run.head, state: 'in_doubt', reason };
    events.inDoubt(run.head);
    return (await reconcile(run.head, last?.answer)) ?? { kind: 'in-doubt', head: run.head, answer: last?.answer };
  };

  return { succeed, reject, doubt, pend, letGo, reconcile };
};
