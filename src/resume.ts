import type { Driver } from './attempts.js';
import { isOffline } from './calls.js';
import type { OperationInfo } from './errors.js';
import { infoOf, type Events } from './events.js';
import { placeOf, type CallResult, type Flights } from './flights.js';
import { createLanes } from './lanes.js';
import { isAnonymous, isQuarantined, type Head } from './operation.js';
import type { Settings } from './options.js';
import type { Records } from './records.js';
import { fingerprintOf } from './snapshot.js';
import type { OperationEvent } from './transitions.js';

export interface ResumeOptions {
  /** Also resume operations without a name, which nobody may be waiting for any more. @default false */
  readonly anonymous?: boolean;
  /** Also try what is parked. @default false */
  readonly parked?: boolean;
}

/** What a pass did with each open operation it met. */
type Fate =
  | 'succeeded' | 'rejected' | 'cancelled' | 'inDoubt' | 'pending' // driven by this pass, and what it is now
  | 'busy' // somebody else drives it
  | 'later' // its time has not come
  | 'parked' | 'anonymous' // left alone; see ResumeOptions
  | 'reserved' // a key without a request
  | 'foreign' // of a scope that this process may not act for
  | 'quarantined'; // cannot be read, or is not what was stored

/** What one pass came to, and when the next one has something to do. */
export interface ResumeReport extends Readonly<Record<Fate, readonly OperationInfo[]>> {
  /** Earliest due time among what was left, ms since the epoch. */
  readonly nextAttemptAt: number | undefined;
}

/** Heads read at a time: enough for one read to serve many, few enough to hold in memory with their bodies. */
const PAGE = 100;

/** Operations that a pass has in hand at the same time, so that a slow origin does not hold up the others. */
const IN_HAND = 64;

/** When to look again at what somebody else drives, ms: a pass reads every open head. */
const BUSY_MS = 1_000;

/** Operations of one origin that a pass sends at the same time: an outage ends in a trickle, not in a stampede. */
const PER_ORIGIN = 4;

const FATES: readonly Fate[] = ['succeeded', 'rejected', 'cancelled', 'inDoubt', 'pending', 'busy', 'later', 'parked', 'anonymous', 'reserved', 'foreign', 'quarantined'];

const stateFate = (head: Head): Fate => (head.state === 'in_doubt' ? 'inDoubt' : head.state);

export interface ResumerOptions {
  readonly settings: Settings;
  readonly records: Records;
  readonly flights: Flights;
  readonly driver: Driver;
  readonly events: Events;
  /** Aborts when the client closes. */
  readonly closing: AbortSignal;
  readonly owns: (scope: string) => boolean | Promise<boolean>;
  /** Places of what was parked by this client: others, who may have other credentials, try once. */
  readonly parkedHere: ReadonlySet<string>;
}

/** One pass; asked for twice at the same time it is one drain. */
export type Resume = (options?: ResumeOptions) => Promise<ResumeReport>;

export const createResumer = ({ settings, records, flights, driver, events, closing, owns, parkedHere }: ResumerOptions): Resume => {
  const { policy, profile } = settings;
  const lanes = createLanes(PER_ORIGIN);

  const doubt = async (head: Head, reason: string): Promise<Head> => {
    const event: OperationEvent = { type: isAnonymous(head) ? 'abandon' : 'doubt', reason };
    const { done, head: now } = await records.apply(head, event);
    if (done && now) events.inDoubt(now);
    return now ?? head;
  };

  /** Whether the time of a head has come. A due time that no rule could have set comes from a clock that was set back. */
  const isDue = (head: Head): boolean => {
    const wait = (head.nextAttemptAt ?? 0) - records.now();
    const longest = head.state === 'in_doubt' ? settings.maxServerTime : Math.max(policy.maxRetryAfter, policy.backoffLimit);
    return wait <= 0 || wait > longest;
  };

  const isParked = (head: Head, options: ResumeOptions): boolean => {
    if (!head.parked || options.parked) return false;
    if (head.parked === 'offline') return isOffline();
    return head.parked === 'redirected' || parkedHere.has(placeOf(head));
  };

  /** Why a pending head is left alone; undefined when it is to be driven. */
  const leftAlone = async (head: Head, options: ResumeOptions): Promise<Fate | undefined> => {
    if (!head.snapshot) return 'reserved';
    if (flights.get(placeOf(head))) return 'busy';
    if (isParked(head, options)) return 'parked';
    if (!isDue(head) && !options.parked) return 'later';
    if (!(await owns(head.scope))) {
      events.foreign(head);
      return 'foreign';
    }
    if (!records.isOwn(head) && !(await records.isFree(head))) return 'busy';
    return undefined;
  };

  const fly = async (head: Head): Promise<Head> => {
    const place = placeOf(head);
    // A call may have set off since this pass looked; two drivers of one process could not tell their leases apart.
    const flight = flights.get(place) ?? flights.start(place, { fingerprint: head.fingerprint, isPass: true }, async (interest): Promise<CallResult> => {
      const { done, head: claimed } = await records.apply(head, { type: 'claim', lease: await records.lease(), send: true });
      if (!done || !claimed) return { kind: 'lost', head: claimed };
      return driver.drive({ head: claimed, policy, timeout: policy.timeout, ...interest });
    });
    const result = await flight.join(closing, policy.totalTimeout);
    return (result && 'head' in result ? result.head : undefined) ?? (await records.get(head)) ?? head;
  };

  /** Drives one pending head, if nothing forbids it. */
  const drive = async (head: Head, options: ResumeOptions): Promise<readonly [Fate, Head]> => {
    const alone = await leftAlone(head, options);
    if (alone) return [alone, head];
    if (records.isWindowOver(head, policy.timeout)) return ['inDoubt', await doubt(head, 'key-window')];
    if (isAnonymous(head) && !options.anonymous) return ['anonymous', head];
    const { snapshot, request, fingerprint } = head;
    if (snapshot && (await fingerprintOf(snapshot, request, profile)) !== fingerprint) {
      events.quarantined(head, 'the stored bytes do not match their fingerprint');
      return ['quarantined', await doubt(head, 'corrupt')];
    }
    const now = await lanes(new URL(snapshot?.url ?? '').origin, () => fly(head));
    return [stateFate(now), now];
  };

  const visit = async (head: Head, options: ResumeOptions): Promise<readonly [Fate, Head]> => {
    if (isQuarantined(head)) {
      events.quarantined(head, head.unreadable ?? 'written by a newer version');
      return ['quarantined', head];
    }
    if (head.state === 'pending') return drive(head, options);
    if (isAnonymous(head) && records.now() > (head.lastSentAt ?? head.createdAt) + settings.nameRetention) {
      if (await records.remove(head)) events.inDoubt({ ...head, reason: 'purged' });
      return ['inDoubt', head];
    }
    const asked = isDue(head) && (await owns(head.scope)) ? await driver.reconcile(head, undefined) : undefined;
    const now = asked && 'head' in asked && asked.head ? asked.head : head;
    return [stateFate(now), now];
  };

  const pass = async (options: ResumeOptions): Promise<ResumeReport> => {
    const fates = Object.fromEntries(FATES.map(fate => [fate, []])) as unknown as Record<Fate, OperationInfo[]>;
    const dues: number[] = [];
    const visits = new Set<Promise<void>>();
    const failures: unknown[] = [];
    const call = async (head: Head): Promise<void> => {
      const [fate, now] = await visit(head, options);
      fates[fate].push(infoOf(now));
      // Its driver may die at any time, and nobody would tell.
      const due = fate === 'busy' ? records.now() + BUSY_MS : now.nextAttemptAt;
      if (due !== undefined) dues.push(due);
    };
    const setOff = async (head: Head): Promise<void> => {
      if (closing.aborted) return;
      if (visits.size >= IN_HAND) await Promise.race(visits);
      // One that cannot be visited keeps none of the others from it.
      const done = call(head).catch((error: unknown) => void failures.push(error)).finally(() => visits.delete(done));
      visits.add(done);
    };
    await records.lease(); // opens the store, so that its failure is told before anything is read
    for await (const page of records.pages({ shelf: 'open', limit: PAGE })) {
      for (const head of page) await setOff(head);
      if (closing.aborted) break;
    }
    await Promise.all(visits);
    if (failures.length > 0) throw failures[0];
    return { ...fates, nextAttemptAt: dues.length > 0 ? Math.min(...dues) : undefined };
  };

  let current: { readonly key: string; readonly report: Promise<ResumeReport> } | undefined;
  return (options = {}) => {
    const key = `${options.anonymous === true}${options.parked === true}`;
    if (current?.key === key) return current.report;
    const report = pass(options).finally(() => {
      if (current?.report === report) current = undefined;
    });
    current = { key, report };
    return report;
  };
};
