import type { Driver } from './attempts.js';
import type { Drive } from './drive.js';
import { KeyReusedError, OperationMismatchError, isSamekeyError } from './errors.js';
import { infoOf, type Events } from './events.js';
import { placeOf, type CallResult, type Flights, type Interest } from './flights.js';
import { isQuarantined, type Head, type Refusal } from './operation.js';
import type { CallPolicy, OperationOptions, Settings } from './options.js';
import { assertReadable, type NewHead, type Records } from './records.js';
import type { FrozenRequest } from './snapshot.js';
import type { Target } from './target.js';
import type { OperationEvent } from './transitions.js';
import { isWindowOver } from './window.js';

/** One call of a managed method. */
export interface ManagedCall {
  readonly target: Target;
  readonly frozen: FrozenRequest;
  readonly options: Pick<OperationOptions, 'again' | 'since' | 'accept' | 'scope'>;
  readonly policy: CallPolicy;
  readonly init?: RequestInit | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a call finds under its name. */
type Situation = 'reserved' | 'unsent' | 'leased' | 'free' | 'succeeded' | 'in_doubt' | 'cancelled' | Refusal;

/** What it does then. */
type Step =
  | 'claim' // drive what is stored
  | 'wait' // somebody else drives it
  | 'tell' // what the record says
  | 'renew' // rule 6: the next key if this one is spent, else this key with the new bytes
  | 'renew-if-again' // only when the caller says so
  | 'advance' // the next key
  | 'revise' // this key with the new bytes
  | 'mismatch';

/** Rule 2 as data: a call under an existing name, with the same fingerprint, with another. */
const ON_CALL: Readonly<Record<Situation, readonly [same: Step, other: Step]>> = {
  reserved: ['revise', 'revise'],
  unsent: ['claim', 'mismatch'],
  leased: ['wait', 'mismatch'],
  free: ['claim', 'mismatch'],
  succeeded: ['tell', 'mismatch'],
  in_doubt: ['tell', 'mismatch'],
  stored: ['renew-if-again', 'renew'],
  answered: ['renew-if-again', 'renew'],
  'not-admitted': ['revise', 'revise'],
  reconciled: ['advance', 'advance'],
  cancelled: ['revise', 'revise'],
};

/** First and longest pause between two looks at a record that somebody else drives, ms: a driver that was killed is replaced within the longer one. */
const FIRST_LOOK_MS = 25;
const LAST_LOOK_MS = 100;

export interface CallsOptions {
  readonly settings: Settings;
  readonly records: Records;
  readonly flights: Flights;
  readonly driver: Driver;
  readonly events: Events;
  /** Drops what is over. */
  readonly tidy: () => Promise<void>;
  /** Drives heads that the store could not take; see `send-unprotected`. */
  readonly volatile: { readonly driver: Driver; readonly records: Records };
}

/** Whether the platform says that nothing can be sent. That it can be sent nobody can say. */
export const isOffline = (): boolean => (globalThis.navigator as Navigator | undefined)?.onLine === false;

/** Whether nothing at all could be read or written. */
const isStoreFailure = (error: unknown): boolean => isSamekeyError(error, 'STORE_UNAVAILABLE') || isSamekeyError(error, 'STORE_FULL');

export interface Calls {
  /**
   * Makes a call's operation happen, once, and waits for what comes of it.
   *
   * @returns undefined when the caller's patience is over
   */
  readonly perform: (call: ManagedCall) => Promise<CallResult | undefined>;
  /** Looks at a record until somebody has settled it, or nobody drives it any more, nor is `expected` to. */
  readonly watch: (head: Head, wanted: () => boolean, signal: AbortSignal | undefined, expected?: (head: Head) => boolean) => Promise<Head | undefined>;
}

/** Whether a flight ended without telling what became of the operation. */
const isUndecided = (result: CallResult | undefined): boolean => (result?.kind === 'lost' || result?.kind === 'pending') && result.head?.state === 'pending';

export const createCalls = ({ settings, records, flights, driver, events, tidy, volatile }: CallsOptions): Calls => {
  const situationOf = async (head: Head): Promise<Situation> => {
    if (head.state === 'rejected') return head.refusal ?? 'answered';
    if (head.state !== 'pending') return head.state;
    if (!head.snapshot) return 'reserved';
    if (head.firstSentAt === undefined && !head.lease) return 'unsent';
    // This client has no flight for it, so what it holds is a leftover of its own.
    return records.isOwn(head) || (await records.isFree(head)) ? 'free' : 'leased';
  };

  const mismatch = (head: Head | undefined, { target, frozen }: ManagedCall): OperationMismatchError => {
    const { method, url } = frozen.snapshot;
    const known = head?.snapshot;
    const differs = known && (known.method !== method || known.url !== url) ? `it is ${known.method} ${known.url}, given was ${method} ${url}` : `the body of ${method} ${url} (or an identity header) is another one`;
    return new OperationMismatchError(
      `The operation "${target.name ?? target.id}" stands for another request: ${differs}. Nothing was sent. Use another name for another intent, or give the same method, URL, body and identity headers.`,
      { operation: head && infoOf(head), phase: 'not-sent' },
    );
  };

  const driveOf = (head: Head, { policy, frozen, init, options }: ManagedCall, interest: Interest): Drive => {
    const live = { credentials: frozen.credentials, init, accept: options.accept ?? settings.accept, ownScope: options.scope !== undefined };
    return { head, policy, timeout: policy.timeout, live, ...interest };
  };

  const fly = async (head: Head, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    const result = await driver.drive(driveOf(head, call, interest));
    if (result.kind === 'spent') return advance(result.head, call, interest);
    if (result.kind !== 'lost' || !result.head) return result;
    const { head: last } = result;
    // What a driver lost may be gone: forgotten on purpose, so it is not begun anew.
    const now = await records.get(last).catch(() => last);
    return now ? follow(now, call, interest) : { kind: 'lost', head: undefined };
  };

  const change = async (head: Head, event: OperationEvent, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    const { done, head: now } = await records.apply(head, event);
    return done && now ? fly(now, call, interest) : enter(now, call, interest);
  };

  const advance = async (head: Head, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    const { target, frozen } = call;
    if (head.keySource === 'adopted') {
      throw new KeyReusedError(`The key ${head.key} is spent on a refused request, and a key that you chose is never replaced. Nothing was sent. Use a new key for the corrected request.`, { operation: infoOf(head) });
    }
    const key = target.keyOf(head.generation + 1);
    return change(head, { type: 'advance', frozen, lease: await records.lease(), key, elsewhere: target.keySource === 'derived' }, call, interest);
  };

  const revise = async (head: Head, call: ManagedCall, interest: Interest): Promise<CallResult> =>
    change(head, { type: 'revise', frozen: call.frozen, lease: await records.lease() }, call, interest);

  /** Whether a pause came to its end before everybody left. */
  const slept = (ms: number, { idle }: Interest): Promise<boolean> => settings.clock.sleep(ms, idle).then(() => true, () => false);

  const claim = async (head: Head, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    if (head.firstSentAt === undefined && isOffline()) return { kind: 'pending', head, reason: 'offline' };
    const due = Math.min((head.nextAttemptAt ?? 0) - records.now(), call.policy.maxRetryAfter);
    // The server asked for this pause; a new call does not know better.
    if (due > interest.left() || (due > 0 && !(await slept(due, interest)))) return { kind: 'pending', head, reason: 'not due yet' };
    return change(head, { type: 'claim', lease: await records.lease(), send: true }, call, interest);
  };

  const watch: Calls['watch'] = async (head, wanted, signal, expected = () => false) => {
    let current: Head | undefined = head;
    for (let pause = FIRST_LOOK_MS; current && wanted() && ((await situationOf(current)) === 'leased' || expected(current)); pause = Math.min(2 * pause, LAST_LOOK_MS)) {
      await settings.clock.sleep(pause, signal);
      current = await records.get(head);
    }
    return current;
  };

  const follow = async (head: Head, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    const now = await watch(head, interest.wanted, interest.idle).catch(() => head);
    if (now?.state === 'pending' && interest.wanted()) return enter(now, call, interest);
    return { kind: 'lost', head: now };
  };

  const step = async (name: Step, head: Head, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    switch (name) {
      case 'claim':
        return claim(head, call, interest);
      case 'wait':
        return follow(head, call, interest);
      case 'advance':
        return advance(head, call, interest);
      case 'revise':
        return revise(head, call, interest);
      case 'renew':
        return head.refusal === 'stored' ? advance(head, call, interest) : revise(head, call, interest);
      case 'renew-if-again':
        return call.options.again ? step('renew', head, call, interest) : tell(head);
      case 'tell':
        return tell(head);
      case 'mismatch':
        throw mismatch(head, call);
    }
  };

  const tell = async (head: Head): Promise<CallResult> => {
    const asked = head.state === 'in_doubt' ? await driver.reconcile(head, undefined) : undefined;
    if (asked) return asked;
    events.replayed(head, 'keystore');
    return { kind: 'stored', head };
  };

  /** Goes on from the record that is there; begins one where there is none. */
  const enter = async (head: Head | undefined, call: ManagedCall, interest: Interest): Promise<CallResult> => {
    if (!head) return begin(call, interest);
    if (isQuarantined(head)) events.quarantined(head, head.unreadable ?? 'newer format');
    assertReadable(head);
    const [same, other] = ON_CALL[await situationOf(head)];
    return step(head.fingerprint === call.frozen.fingerprint ? same : other, head, call, interest);
  };

  /** What a call begins with, when nothing is known of its operation. */
  const firstOf = async ({ target, frozen, options, policy }: ManagedCall, { now, lease }: Pick<Records, 'now' | 'lease'>): Promise<NewHead> => {
    const { client, scope, id, name, keySource } = target;
    const { keyWindow } = settings;
    const identity = { client, scope, id, name, key: target.keyOf(1), keySource, elsewhere: keySource !== 'random', keyWindow };
    const head = { ...identity, snapshot: frozen.snapshot, request: frozen.body, fingerprint: frozen.fingerprint };
    const { since } = options;
    // Before any time is asked for: opening the store tells whether this clock is behind what was written.
    const held = await lease();
    // The record may have been wiped, and the server may have forgotten the key since.
    if (since !== undefined && isWindowOver({ firstSentAt: since, keyWindow }, now(), policy.timeout)) return { ...head, state: 'in_doubt', reason: 'key-window', firstSentAt: since };
    if (!isOffline()) return { ...head, firstSentAt: now(), lease: held };
    return name === undefined ? { ...head, state: 'cancelled' } : { ...head, parked: 'offline' };
  };

  const begin = async (call: ManagedCall, interest: Interest): Promise<CallResult> => {
    const { done, head } = await records.begin(await firstOf(call, records));
    if (!done || !head) return enter(head, call, interest);
    if (head.lease) return fly(head, call, interest);
    if (head.state === 'in_doubt') return (await driver.reconcile(head, undefined)) ?? { kind: 'in-doubt', head };
    if (head.parked) events.parked(head, head.parked);
    return { kind: 'pending', head, reason: 'offline' };
  };

  const sendUnprotected = async (call: ManagedCall, interest: Interest): Promise<CallResult> => {
    const { head } = await volatile.records.begin(await firstOf(call, volatile.records));
    const result = head && (await volatile.driver.drive(driveOf(head, call, interest)));
    return { kind: 'volatile', result: result ?? { kind: 'lost', head } };
  };

  const run = async (call: ManagedCall, interest: Interest): Promise<CallResult> => {
    try {
      return await begin(call, interest).catch(async (error: unknown) => {
        if (!isSamekeyError(error, 'STORE_FULL')) throw error;
        // What is over takes room too, until somebody looks.
        await tidy();
        return begin(call, interest);
      });
    } catch (error) {
      if (!isStoreFailure(error)) throw error;
      events.storeFailure(undefined, error);
      // A name may have any number of generations behind it; without its record nobody knows the right key.
      if (settings.onStoreFailure === 'reject' || call.target.name !== undefined) throw error;
      return sendUnprotected(call, interest);
    }
  };

  const perform: Calls['perform'] = async call => {
    const { target, frozen, policy, signal } = call;
    const place = placeOf(target);
    const until = settings.clock.now() + policy.totalTimeout;
    for (;;) {
      const current = flights.get(place);
      if (current && current.fingerprint !== frozen.fingerprint) throw mismatch(await records.get(target), call);
      const flight = current ?? flights.start(place, { fingerprint: frozen.fingerprint, isPass: false }, interest => run(call, interest));
      const result = await flight.join(signal, until - settings.clock.now());
      if (!flight.isPass || !isUndecided(result)) return result;
    }
  };

  return { perform, watch };
};
