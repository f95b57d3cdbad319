import type { ReceivedAnswer } from './answer.js';
import { after } from './clock.js';
import { pendingOf, startRun, type Drive, type DriveResult, type DriverOptions, type Run } from './drive.js';
import { ForeignScopeError, isSamekeyError } from './errors.js';
import { isAnonymous, type Head, type HeaderList } from './operation.js';
import { decide, isAmbiguous, type Decision, type History } from './retry.js';
import { safeNewKey, type Sent } from './send.js';
import { createSettlement, type Settlement } from './settle.js';
import { timedOut, within } from './within.js';

/** Drives claimed heads, with the key and the bytes that are in them. It cannot make a key: that is done before, once. */
export interface Driver {
  /** Until the answer is known, or nobody waits, or no further send would be safe. */
  readonly drive: (request: Drive) => Promise<DriveResult>;
  readonly reconcile: Settlement['reconcile'];
}

const isSuccess = ({ outcome }: Sent): boolean => outcome.kind === 'answer' && ((outcome.status >= 200 && outcome.status < 300) || outcome.status === 303);

/** Whether a key-reuse answer to a corrected body allows the next generation (rule 6). */
const isSpent = (head: Head, answer: ReceivedAnswer | undefined): boolean =>
  head.revision > 1 && head.keySource !== 'adopted' && (safeNewKey(answer?.json) === true || !head.elsewhere);

const foreign = (scope: string): ForeignScopeError =>
  new ForeignScopeError(`This process may not act for the scope "${scope}" now. Nothing was sent; the operation is kept until its owner is back.`);

export const createDriver = (options: DriverOptions): Driver => {
  const { records, send, clock, random, events, lease: leaseMs } = options;
  const settlement = createSettlement(options);
  const { pend, letGo, doubt } = settlement;

  const credentialsOf = async ({ head, drive }: Run): Promise<HeaderList> => {
    const given = await options.authorize?.({ scope: head.scope });
    const fresh = given ? [...new Headers(given)] : [];
    const names = new Set(fresh.map(([name]) => name));
    return [...(drive.live?.credentials ?? options.defaults).filter(([name]) => !names.has(name)), ...fresh];
  };

  const admit = async (run: Run): Promise<HeaderList> => {
    const credentials = await credentialsOf(run);
    if (!(await options.owns(run.head.scope, run.drive.live?.ownScope))) throw foreign(run.head.scope);
    return credentials;
  };

  /** In time, because a flight that hangs keeps every later call of its name waiting, and `close` too. */
  const admitInTime = (run: Run): Promise<HeaderList> => {
    const { timeout: ms } = run.drive;
    return within({ clock, ms, expired: timedOut(`authorize or owns did not answer within ${ms} ms`), signal: options.closing }, admit(run));
  };

  const renew = async (run: Run): Promise<void> => {
    const lease = await records.lease();
    const { done, head } = await records.apply(run.head, { type: 'renew', lease, fence: run.head.fence }, 'relaxed');
    if (head) run.head = head;
    run.lost = !done;
  };

  /** Without it a slow answer would look like a dead driver. The function it returns stops it, after a renewal under way. */
  const keepLease = (run: Run): (() => Promise<void>) => {
    let cancel = (): void => undefined;
    let renewing = Promise.resolve();
    const next = (): void => {
      cancel = after(clock, leaseMs / 3, () => {
        // A failure of the store lets the lease run out, which is checked before the next send.
        renewing = renew(run).then(() => (run.lost ? undefined : next()), () => undefined);
      }, true);
    };
    next();
    return async () => {
      cancel();
      await renewing;
      cancel();
    };
  };

  /** No further send: after one, what the caller must hear is that it happened, not that the store failed. */
  const interrupted = (run: Run, error: unknown): DriveResult => {
    const { head, last } = run;
    if (!last || !isSamekeyError(error) || error instanceof ForeignScopeError) return { kind: 'failed', head, error };
    events.storeFailure(head, error);
    return { kind: 'pending', head, reason: 'the key store failed', answer: last.answer, error };
  };

  /** Everything before a send; undefined when all holds, after the last await, for these credentials. */
  const prepare = async (run: Run): Promise<HeaderList | DriveResult> => {
    let credentials: HeaderList;
    try {
      credentials = await admitInTime(run);
      // A cancel, a verdict or a takeover may have come during the pause. Where the store cannot tell, the lease does.
      if (run.last) await renew(run).catch(() => undefined);
      while (!run.lost && records.now() >= (run.head.lease?.until ?? 0)) await renew(run);
    } catch (error) {
      if (error instanceof ForeignScopeError) events.foreign(run.head);
      await letGo(run, run.head.nextAttemptAt);
      return interrupted(run, error);
    }
    if (run.lost) return { kind: 'lost', head: run.head };
    const isFirst = run.progress.attempts === 0 && !run.progress.ambiguous;
    return !isFirst && records.isWindowOver(run.head, run.drive.timeout) ? doubt(run, 'key-window') : credentials;
  };

  const attempt = async (run: Run, credentials: HeaderList): Promise<Sent> => {
    const { drive, head, progress } = run;
    const { timeout, live } = drive;
    run.progress = { ...progress, attempts: progress.attempts + 1, lastSentAt: records.now() };
    events.attempt(head, run.progress.attempts);
    const stop = keepLease(run);
    const sent = await send({ head, credentials, timeout, signal: options.closing, init: live?.init, previous: run.last?.answer }, live?.accept);
    await stop();
    if (sent.outcome.kind === 'no-answer' && !sent.outcome.sent) run.progress = { ...run.progress, lastSentAt: progress.lastSentAt };
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

  const learn = (run: Run, sent: Sent, decision: Decision): void => {
    const { progress } = run;
    run.last = sent;
    run.progress = {
      ...progress,
      ambiguous: progress.ambiguous || isAmbiguous(sent.outcome, decision.reason),
      sawSuccess: progress.sawSuccess || (decision.reason === 'cut-off' && isSuccess(sent)),
    };
    if (decision.reason === 'conflict') run.conflictSince ??= records.now();
    if (decision.action === 'wait') run.waits += 1;
    if (decision.action !== 'retry') return;
    if (decision.reason === 'not-admitted') run.refreshed = true;
    else run.retries += 1;
  };

  /** Waits before a resend; a result means that there is none. */
  const pause = async (run: Run, { action, delay, reason }: Extract<Decision, { action: 'retry' | 'wait' | 'giveUp' }>): Promise<DriveResult | undefined> => {
    const { wanted, idle } = run.drive;
    if (action === 'giveUp' || !wanted()) return pend(run, reason, delay);
    events.retry(run.head, action, delay, reason);
    // A driver that only waits should not look as if it were at work; whoever comes meanwhile sees when it is due.
    const released = delay > leaseMs / 3 && !isAnonymous(run.head);
    if (released) await letGo(run, records.now() + delay);
    try {
      await clock.sleep(delay, idle);
    } catch {
      return released ? pendingOf(run, reason) : pend(run, reason, delay);
    }
    return released ? reclaim(run).catch((error: unknown) => interrupted(run, error)) : undefined;
  };

  const reclaim = async (run: Run): Promise<DriveResult | undefined> => {
    const { done, head } = await records.apply(run.head, { type: 'claim', lease: await records.lease(), send: true });
    if (!done || !head) return { kind: 'lost', head };
    run.head = head;
    return undefined;
  };

  /** Acts on an outcome; undefined means: send again. */
  const act = async (run: Run, sent: Sent, decision: Decision): Promise<DriveResult | undefined> => {
    const { answer } = sent;
    switch (decision.action) {
      case 'retry':
      case 'wait':
      case 'giveUp':
        return decision.delay === 0 ? undefined : pause(run, decision);
      case 'park':
        return pend(run, decision.reason, undefined, decision.as);
      case 'inDoubt':
        return decision.reason === 'key-reused' && isSpent(run.head, answer) ? { kind: 'spent', head: run.head } : doubt(run, decision.reason);
      case 'settle':
        return answer && settlement.succeed(run, sent, answer, decision.reason === 'already-absent');
      case 'reject': {
        const refusal = decision.admitted ? (decision.stored ? 'stored' : 'answered') : 'not-admitted';
        return answer && settlement.reject(run, sent, answer, refusal, decision.reason);
      }
    }
  };

  const drive: Driver['drive'] = async request => {
    const run = startRun(request);
    for (;;) {
      const ready = await prepare(run);
      if ('kind' in ready) return ready;
      const sent = await attempt(run, ready);
      const decision = decide(sent.outcome, historyOf(run), request.policy, random);
      learn(run, sent, decision);
      const result = await act(run, sent, decision);
      if (result) return result;
    }
  };

  return { drive, reconcile: settlement.reconcile };
};
