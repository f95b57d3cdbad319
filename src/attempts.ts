import type { ReceivedAnswer } from './answer.js';
import type { Clock } from './clock.js';
import { ForeignScopeError } from './errors.js';
import type { Events } from './events.js';
import type { Answer, Head, HeaderList, Omission, Parking, Progress, Refusal, State } from './operation.js';
import type { Applied, Records } from './records.js';
import { decide, isAmbiguous, type Decision, type History, type RetryPolicy } from './retry.js';
import { safeNewKey, type Accept, type createSend, type Sent } from './send.js';

/** What the application says of an operation in doubt. */
export type Reconciliation = 'applied' | 'not-applied' | 'unknown' | Response;

/** One drive of one head, by a call or by a resume pass. The head is claimed already. */
export interface Drive {
  readonly head: Head;
  /** Credentials and fetch options of the call that is being answered; a resume pass has none. */
  readonly live?: { readonly credentials: HeaderList; readonly init?: RequestInit | undefined; readonly accept?: Accept | undefined } | undefined;
  readonly policy: RetryPolicy;
  /** ms per attempt. */
  readonly timeout: number;
  /** Whether anybody still waits; nothing is resent when nobody does. */
  wanted(): boolean;
  /** ms until the last of those who wait gives up. */
  left(): number;
  /** Aborts when nobody waits any more. */
  readonly idle: AbortSignal;
}

/** What came of a drive. Every head in it is what the store holds now. */
export type DriveResult =
  | { readonly kind: 'answered'; readonly head: Head; readonly answer: ReceivedAnswer; readonly replayed: boolean; readonly durable: boolean }
  | { readonly kind: 'pending'; readonly head: Head; readonly reason: string; readonly answer?: ReceivedAnswer | undefined; readonly error?: unknown }
  | { readonly kind: 'in-doubt'; readonly head: Head; readonly answer?: ReceivedAnswer | undefined; readonly keyReused: boolean }
  /** The key is spent on an earlier body, and the server or its history says that the next one is safe. The lease is still held. */
  | { readonly kind: 'spent'; readonly head: Head }
  /** Fenced off: somebody else drives or has settled it; the record speaks. */
  | { readonly kind: 'lost'; readonly head: Head | undefined }
  | { readonly kind: 'failed'; readonly head: Head; readonly error: unknown };

export interface DriverOptions {
  readonly records: Records;
  readonly send: ReturnType<typeof createSend>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
  /** ms. */
  readonly lease: number;
  readonly maxAnswerBytes: number;
  readonly maxServerTime: number;
  /** Aborts when the client closes. */
  readonly closing: AbortSignal;
  /** Headers that say who sends, for the scope of the record. */
  authorize?(context: { readonly scope: string }): HeadersInit | Promise<HeadersInit>;
  owns(scope: string): boolean | Promise<boolean>;
  onInDoubt?(head: Head, answer: ReceivedAnswer | undefined): Reconciliation | Promise<Reconciliation>;
  toAnswer(response: Response): Promise<Answer>;
  /** Credentials among the client's own default headers; a resumed request has no others. */
  readonly defaults: HeaderList;
  /** Counts what was settled. */
  settled(): void;
}

/** Sends stop this long before the server may forget the key, ms: clocks differ, and a request takes time to arrive. */
export const WINDOW_MARGIN_MS = 300_000;

/** Whether one more send could meet a server that has forgotten the key. */
export const isWindowOver = (head: Pick<Head, 'firstSentAt' | 'keyWindow'>, now: number, timeout: number): boolean => {
  if (head.firstSentAt === undefined) return false;
  // A first send in the future means that the clock was set back by an unknown amount.
  if (head.firstSentAt > now) return true;
  const margin = Math.min(WINDOW_MARGIN_MS, head.keyWindow / 2);
  return now + (Number.isFinite(timeout) ? timeout : 0) > head.firstSentAt + head.keyWindow - margin;
};

/** Operations that nobody can name again: they are resent only while their caller waits. */
export const isAnonymous = (head: Pick<Head, 'name'>): boolean => head.name === undefined;

/** What one drive has gone through. The one mutable thing here. */
interface Run {
  readonly drive: Drive;
  head: Head;
  progress: Progress;
  retries: number;
  waits: number;
  conflictSince: number | undefined;
  refreshed: boolean;
  lost: boolean;
  last: Sent | undefined;
}

const succeeded = (sent: Sent): boolean => sent.outcome.kind === 'answer' && ((sent.outcome.status >= 200 && sent.outcome.status < 300) || sent.outcome.status === 303);

export const createDriver = (options: DriverOptions) => {
  const { records, send, clock, random, events, lease: leaseMs } = options;

  const omit = (answer: ReceivedAnswer, omitted: Omission, status = answer.meta.status): Answer => ({ meta: { ...answer.meta, status, omitted }, body: null });

  /** The answer as it is stored. */
  const toStored = (answer: ReceivedAnswer, { outcome }: Sent): Answer => {
    if (outcome.kind === 'answer' && outcome.meanings.has('result-unavailable')) return omit(answer, 'unavailable', outcome.originalStatus);
    return (answer.body?.byteLength ?? 0) > options.maxAnswerBytes ? omit(answer, 'too-large') : { meta: answer.meta, body: answer.body };
  };

  /** Writes what is only bookkeeping: a failure is told, and does not change what the caller learns. */
  const note = async (run: Run, write: () => Promise<Applied>): Promise<boolean> => {
    try {
      const { done, head } = await write();
      if (head) run.head = head;
      if (!done) run.lost = true;
      return true;
    } catch (error) {
      events.storeFailure(run.head, error);
      return false;
    }
  };

  const letGo = async (run: Run, nextAttemptAt: number | undefined, parked?: Parking): Promise<void> => {
    const { head, progress } = run;
    const forgettable = isAnonymous(head) && !progress.ambiguous && !progress.sawSuccess;
    await note(run, () =>
      forgettable
        ? records.apply(head, { type: 'cancel', progress }, 'relaxed')
        : records.apply(head, { type: 'release', fence: head.fence, progress, nextAttemptAt, parked }),
    );
    if (parked && !forgettable) events.parked(run.head, parked);
  };

  const pending = async (run: Run, reason: string, delay: number | undefined, parked?: Parking): Promise<DriveResult> => {
    await letGo(run, delay === undefined ? undefined : records.now() + delay, parked);
    return run.lost ? { kind: 'lost', head: run.head } : { kind: 'pending', head: run.head, reason, answer: run.last?.answer, error: run.last?.error };
  };

  const answered = async (run: Run, sent: Sent, answer: ReceivedAnswer, state: State, write: () => Promise<Applied>): Promise<DriveResult> => {
    const durable = await note(run, write);
    // The caller learns what the answer proves, also where the record could not be told.
    if (!durable) run.head = { ...run.head, state };
    const replayed = sent.outcome.kind === 'answer' && sent.outcome.meanings.has('replayed');
    if (replayed) events.replayed(run.head, 'server');
    events.settled(run.head, durable);
    options.settled();
    return { kind: 'answered', head: run.head, answer, replayed, durable };
  };

  const succeed = async (run: Run, sent: Sent, answer: ReceivedAnswer, assumed: boolean): Promise<DriveResult> => {
    const { head, progress, drive } = run;
    const { generation, revision } = head;
    const keep = !isAnonymous(head) || !drive.wanted() || head.keySource === 'adopted';
    const result = await answered(run, sent, answer, 'succeeded', () =>
      records.apply(head, { type: 'succeed', generation, revision, progress, answer: toStored(answer, sent), assumed: assumed || undefined, keep }, 'relaxed'),
    );
    if (run.head.lateStatus !== undefined) events.conflict(run.head);
    // A success is the truth, whoever settled it first, unless the operation was given up meanwhile.
    return run.head.state === 'succeeded' ? result : { kind: 'lost', head: run.head };
  };

  const reject = async (run: Run, sent: Sent, answer: ReceivedAnswer, refusal: Refusal, reason: string): Promise<DriveResult> => {
    const { head, progress } = run;
    const result = await answered(run, sent, answer, 'rejected', () =>
      records.apply(head, { type: 'reject', fence: head.fence, progress, answer: toStored(answer, sent), refusal, reason }),
    );
    return run.lost ? { kind: 'lost', head: run.head } : result;
  };

  const doubt = async (run: Run, reason: string, keyReused = false): Promise<DriveResult> => {
    const { head, progress, last } = run;
    const askAt = options.onInDoubt && (progress.lastSentAt ?? records.now()) + options.maxServerTime;
    await note(run, () => records.apply(head, { type: 'doubt', fence: head.fence, progress, reason, askAt }));
    if (run.lost) return { kind: 'lost', head: run.head };
    events.inDoubt(run.head);
    return (await reconcile(run.head, last?.answer)) ?? { kind: 'in-doubt', head: run.head, answer: last?.answer, keyReused };
  };

  /** Asks the application about an operation in doubt. "Not applied" counts only once the server cannot be at work on it any more. */
  const reconcile = async (head: Head, answer: ReceivedAnswer | undefined): Promise<DriveResult | undefined> => {
    const verdict = await options.onInDoubt?.(head, answer);
    const quiet = records.now() >= (head.lastSentAt ?? head.createdAt) + options.maxServerTime;
    if (verdict === undefined || verdict === 'unknown' || (verdict === 'not-applied' && !quiet)) return undefined;
    const nothing: Answer = { meta: { status: 0, statusText: '', url: head.snapshot?.url ?? '', headers: [], omitted: 'reconciled' }, body: null };
    const supplied = verdict instanceof Response ? await options.toAnswer(verdict) : nothing;
    const { head: now } = await records.apply(head, { type: 'reconcile', applied: verdict !== 'not-applied', answer: supplied });
    if (now) events.settled(now, true);
    return { kind: 'lost', head: now };
  };

  const credentialsOf = async (run: Run): Promise<HeaderList> => {
    const given = await options.authorize?.({ scope: run.head.scope });
    const fresh = given ? [...new Headers(given)] : [];
    const names = new Set(fresh.map(([name]) => name));
    return [...(run.drive.live?.credentials ?? options.defaults).filter(([name]) => !names.has(name)), ...fresh];
  };

  /** All that must hold after the last await before a send; a lease that ran out is asked for again first. */
  const isReady = async (run: Run): Promise<boolean> => {
    while (!run.lost && records.now() >= (run.head.lease?.until ?? 0)) await renew(run);
    return !run.lost;
  };

  const renew = async (run: Run): Promise<void> => {
    const lease = await records.lease();
    const { done, head } = await records.apply(run.head, { type: 'renew', lease, fence: run.head.fence }, 'relaxed');
    if (head) run.head = head;
    run.lost = !done;
  };

  /** Renews the lease while a request is out. Without it a slow answer would look like a dead driver. */
  const keepLease = async (run: Run, stop: AbortSignal): Promise<void> => {
    try {
      while (!run.lost) {
        await clock.sleep(leaseMs / 3, stop, true);
        await renew(run);
      }
    } catch {
      // Stopped, or the store failed: the lease runs out by itself and is checked before the next send.
    }
  };

  const attempt = async (run: Run, credentials: HeaderList): Promise<Sent> => {
    const { drive, head, progress } = run;
    const stop = new AbortController();
    const before = progress.lastSentAt;
    run.progress = { ...progress, attempts: progress.attempts + 1, lastSentAt: records.now() };
    events.attempt(head, run.progress.attempts);
    const { timeout, live } = drive;
    const sending = send({ head, credentials, timeout, signal: options.closing, init: live?.init, previous: run.last?.answer }, live?.accept);
    const renewing = keepLease(run, stop.signal);
    const sent = await sending;
    stop.abort();
    await renewing;
    if (sent.outcome.kind === 'no-answer' && !sent.outcome.sent) run.progress = { ...run.progress, lastSentAt: before };
    return sent;
  };

  const historyOf = ({ drive, head, progress, ...run }: Run): History => ({
    method: head.snapshot?.method ?? '',
    conditional: head.snapshot?.headers.some(([name]) => name === 'if-match') === true,
    retries: run.retries,
    waits: run.waits,
    conflictFor: run.conflictSince === undefined ? 0 : records.now() - run.conflictSince,
    ambiguous: progress.ambiguous,
    elsewhere: head.elsewhere,
    sawSuccess: progress.sawSuccess,
    caller: drive.live !== undefined && drive.wanted(),
    canRefresh: options.authorize !== undefined && !run.refreshed,
    now: records.now(),
    left: drive.left(),
  });

  const pause = async (run: Run, decision: Decision & { delay: number }): Promise<DriveResult | undefined> => {
    const { delay, reason } = decision;
    if (!run.drive.wanted()) return pending(run, reason, delay);
    events.retry(run.head, decision.action === 'wait' ? 'wait' : 'retry', delay, reason);
    const long = delay > leaseMs / 3;
    // Nobody should think that a driver which only waits is at work; whoever comes meanwhile sees when it is due.
    if (long && !isAnonymous(run.head)) await letGo(run, records.now() + delay);
    try {
      await clock.sleep(delay, run.drive.idle);
    } catch {
      return run.head.lease ? pending(run, reason, delay) : { kind: 'pending', head: run.head, reason, answer: run.last?.answer, error: run.last?.error };
    }
    if (run.head.lease === undefined) {
      const { done, head } = await records.apply(run.head, { type: 'claim', lease: await records.lease(), send: true });
      if (!done || !head) return { kind: 'lost', head };
      run.head = head;
    }
    return undefined;
  };

  const count = (run: Run, decision: Decision): void => {
    if (decision.reason === 'conflict') run.conflictSince ??= records.now();
    if (decision.reason === 'not-admitted') run.refreshed = true;
    else if (decision.action === 'wait') run.waits += 1;
    else run.retries += 1;
  };

  /** Acts on an outcome; undefined means: send again. */
  const act = async (run: Run, sent: Sent, decision: Decision): Promise<DriveResult | undefined> => {
    const { answer } = sent;
    switch (decision.action) {
      case 'retry':
      case 'wait':
        count(run, decision);
        return decision.delay === 0 ? undefined : pause(run, decision);
      case 'giveUp':
        return pending(run, decision.reason, decision.delay);
      case 'park':
        return pending(run, decision.reason, undefined, decision.as);
      case 'inDoubt':
        if (decision.reason === 'key-reused' && isSpent(run.head, answer)) return { kind: 'spent', head: run.head };
        return doubt(run, decision.reason, decision.reason === 'key-reused');
      case 'settle':
        return answer && succeed(run, sent, answer, decision.reason === 'already-absent');
      case 'reject':
        return answer && reject(run, sent, answer, decision.admitted ? (decision.stored ? 'stored' : 'answered') : 'not-admitted', decision.reason);
    }
  };

  /** Whether a key-reuse answer to a corrected body allows the next generation (rule 6). */
  const isSpent = (head: Head, answer: ReceivedAnswer | undefined): boolean =>
    head.revision > 1 && head.keySource !== 'adopted' && (safeNewKey(answer?.json) === true || !head.elsewhere);

  /** Everything before a send. A result means that nothing is sent. */
  const prepare = async (run: Run): Promise<{ readonly credentials: HeaderList } | { readonly result: DriveResult }> => {
    let credentials: HeaderList;
    try {
      credentials = await credentialsOf(run);
      if (!(await options.owns(run.head.scope))) {
        throw new ForeignScopeError(`This process may not act for the scope "${run.head.scope}" now. Nothing was sent; the operation is kept until its owner is back.`);
      }
      if (!(await isReady(run))) return { result: { kind: 'lost', head: run.head } };
    } catch (error) {
      if (error instanceof ForeignScopeError) events.foreign(run.head);
      await letGo(run, run.head.nextAttemptAt);
      return { result: { kind: 'failed', head: run.head, error } };
    }
    const first = run.head.attempts === 0 && run.progress.attempts === 0 && !run.progress.ambiguous;
    if (!first && isWindowOver(run.head, records.now(), run.drive.timeout)) return { result: await doubt(run, 'key-window') };
    return { credentials };
  };

  /** Drives a claimed head until its answer is known, or nobody waits, or no further send would be safe. */
  const drive = async (request: Drive): Promise<DriveResult> => {
    const { head } = request;
    const { attempts, ambiguous, sawSuccess, lastSentAt } = head;
    const progress: Progress = { attempts, ambiguous, sawSuccess, lastSentAt };
    const run: Run = { drive: request, head, progress, retries: 0, waits: 0, conflictSince: undefined, refreshed: false, lost: false, last: undefined };
    for (;;) {
      const ready = await prepare(run);
      if ('result' in ready) return ready.result;
      const sent = await attempt(run, ready.credentials);
      const decision = decide(sent.outcome, historyOf(run), request.policy, random);
      run.last = sent;
      run.progress = {
        ...run.progress,
        ambiguous: run.progress.ambiguous || isAmbiguous(sent.outcome, decision.reason),
        sawSuccess: run.progress.sawSuccess || (decision.reason === 'cut-off' && succeeded(sent)),
      };
      const result = await act(run, sent, decision);
      if (result) return result;
    }
  };

  return { drive, reconcile };
};
