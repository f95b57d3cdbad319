import { receive } from './answer.js';
import type { Calls } from './calls.js';
import { OperationPendingError, SamekeyError, type OperationInfo } from './errors.js';
import { infoOf, type Events } from './events.js';
import { placeOf, type CallResult, type Flights } from './flights.js';
import type { Reconciliation } from './drive.js';
import { isQuarantined, NO_ANSWER, type Answer, type Head, type PastGeneration, type State } from './operation.js';
import type { Settings } from './options.js';
import { present } from './present.js';
import { assertReadable, type Records } from './records.js';
import type { ResumeOptions, ResumeReport } from './resume.js';
import type { Runner } from './runner.js';
import { assertScope, type Target } from './target.js';

/** Which operation: its name, one generation of it, or the key. */
export type OperationRef =
  | string
  | { readonly name: string; readonly generation?: number; readonly scope?: string }
  | { readonly key: string; readonly scope?: string };

/** What is known of an operation. */
export interface OperationRecord extends OperationInfo {
  /** Why it is in its state, in a word. */
  readonly reason: string | undefined;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly parked: string | undefined;
  /** ms since the epoch, as all times here. */
  readonly createdAt: number;
  readonly firstSentAt: number | undefined;
  readonly lastSentAt: number | undefined;
  readonly settledAt: number | undefined;
  readonly nextAttemptAt: number | undefined;
  /** Why the record cannot be used; undefined for a sound one. */
  readonly quarantined: string | undefined;
  /** The kept answer; undefined before it is there and after it was dropped. */
  readonly answer: { readonly status: number; readonly headers: Headers; readonly body: ArrayBuffer | null } | undefined;
  /** Generations that are over. */
  readonly past: readonly PastGeneration[];
}

export interface ListOptions {
  readonly state?: State;
  readonly scope?: string;
}

/** `api.operations`: what is kept, and what to do about it. */
export interface Operations {
  /** The record; undefined when there is none. */
  get(ref: OperationRef): Promise<OperationRecord | undefined>;
  /** The durable key of a name, reserved before anything is sent: for APIs that carry it in the body, or for an SDK's own option. */
  key(name: string, options?: { readonly scope?: string }): Promise<string>;
  /**
   * The answer, waiting for whoever drives the operation (a runner of this client, too): to re-attach after a reload.
   *
   * @throws InDoubtError, OperationPendingError when nobody drives it, AnswerOmittedError; SamekeyError `NO_SUCH_OPERATION`
   */
  result(ref: OperationRef, options?: { readonly signal?: AbortSignal }): Promise<Response>;
  list(options?: ListOptions): AsyncIterable<OperationRecord>;
  /** One pass over what is pending: everything that is due, owned and free is sent again with its own key and bytes. */
  readonly resume: (options?: ResumeOptions) => Promise<ResumeReport>;
  /** Resumes at once, on `online`, when the page is shown again, and when something is due. */
  readonly start: (options?: ResumeOptions) => Runner;
  /** Never sent: cancelled. Maybe sent: not resent any more, in doubt. */
  cancel(ref: OperationRef): Promise<OperationRecord>;
  /**
   * Tells what became of an operation in doubt (or pending): 'applied', 'not-applied', or the answer itself.
   *
   * @throws SamekeyError `TOO_EARLY` for 'not-applied' while the server may still be at work
   */
  reconcile(ref: OperationRef, verdict: Exclude<Reconciliation, 'unknown'>): Promise<OperationRecord>;
  /** Erases everything of a scope, for log-out on a shared device, and reports what was unsettled. */
  forget(options: { readonly scope: string }): Promise<{ readonly erased: number; readonly unsettled: readonly OperationInfo[] }>;
}

const PAGE = 200;

export interface OperationsOptions {
  readonly settings: Settings;
  readonly records: Records;
  readonly flights: Flights;
  readonly calls: Calls;
  readonly events: Events;
  readonly scope: () => Promise<string | undefined>;
  /** The target of a name, for keys that are reserved before there is a request. */
  readonly target: (name: string, scope: string) => Target;
  readonly resume: Operations['resume'];
  readonly start: Operations['start'];
  /** Whether a runner of this client is at work. */
  readonly running: () => boolean;
}

const recordOf = (head: Head): OperationRecord => ({
  ...infoOf(head),
  reason: head.reason,
  method: head.snapshot?.method,
  url: head.snapshot?.url,
  parked: head.parked,
  createdAt: head.createdAt,
  firstSentAt: head.firstSentAt,
  lastSentAt: head.lastSentAt,
  settledAt: head.settledAt,
  nextAttemptAt: head.nextAttemptAt,
  quarantined: isQuarantined(head) ? (head.unreadable ?? `format ${head.format}`) : undefined,
  answer: head.answer && !head.answer.omitted ? { status: head.answer.status, headers: new Headers(head.answer.headers as [string, string][]), body: head.response } : undefined,
  past: head.past ?? [],
});

const describe = (ref: OperationRef): string => (typeof ref === 'string' ? `"${ref}"` : 'name' in ref ? `"${ref.name}"` : `with key ${ref.key}`);

const impossible = (head: Head, act: string): SamekeyError =>
  new SamekeyError('NOT_POSSIBLE', `The operation "${head.name ?? head.key}" is ${head.state}: ${act} does nothing there. Only what is pending or in doubt can be decided; see operations.get.`, { operation: infoOf(head) });

const missing = (ref: OperationRef): SamekeyError =>
  new SamekeyError('NO_SUCH_OPERATION', `There is no operation ${describe(ref)} here: it was never begun in this store, belongs to another scope or client, or was purged.`);

export const createOperations = (options: OperationsOptions): Operations => {
  const { settings, records, flights, calls, events } = options;

  async function* heads(shelves: readonly ('open' | 'settled')[], scope?: string): AsyncGenerator<Head> {
    for (const shelf of shelves) {
      for await (const page of records.pages({ shelf, limit: PAGE, ...(scope !== undefined && { scope }) })) yield* page;
    }
  }

  const byKey = async (key: string, scope: string): Promise<Head | undefined> => {
    for (const id of [`anon:${key}`, `key:${key}`]) {
      const head = await records.get({ client: settings.client, scope, id });
      if (head) return head;
    }
    // Names are not found by their keys without looking: this is for people and tools, not for a hot path.
    for await (const head of heads(['open', 'settled'], scope)) if (head.key === key || head.past.some(past => past.key === key)) return head;
    return undefined;
  };

  const find = async (ref: OperationRef): Promise<Head | undefined> => {
    const given = typeof ref === 'string' ? undefined : ref.scope;
    const scope = given ?? (await options.scope());
    if (typeof ref !== 'string' && 'key' in ref) return byKey(ref.key, scope ?? '');
    const { name, generation } = typeof ref === 'string' ? { name: ref, generation: undefined } : ref;
    const head = await records.get({ client: settings.client, scope: assertScope(scope, name), id: `name:${name}` });
    if (!head || generation === undefined || generation === head.generation) return head;
    const past = head.past.find(entry => entry.generation === generation);
    return past && { ...head, ...past, response: null, answer: undefined, snapshot: undefined, past: head.past };
  };

  const need = async (ref: OperationRef): Promise<Head> => {
    const head = await find(ref);
    if (!head) throw missing(ref);
    return head;
  };

  const changed = async (head: Head, event: Parameters<Records['apply']>[1]): Promise<Head> => {
    const { done, head: now } = await records.apply(head, event);
    if (done && now) return now;
    throw impossible(now ?? head, event.type);
  };

  /** A runner of this client will come to it, or is about to. */
  const expected = ({ state, parked, name, snapshot }: Head): boolean =>
    options.running() && state === 'pending' && parked === undefined && name !== undefined && snapshot !== undefined;

  const result: Operations['result'] = async (ref, { signal } = {}) => {
    const flight = flights.get(placeOf(await need(ref)));
    const joined = await flight?.join(signal, Number.POSITIVE_INFINITY);
    // A pass that found the operation driven elsewhere, or stopped before its end, has no say: the record has.
    if (joined && joined.kind !== 'pending' && joined.kind !== 'lost') return present(joined, 'throw');
    const head = await need(ref);
    assertReadable(head);
    const now = await calls.watch(head, () => true, signal, expected);
    if (now?.state === 'pending') {
      throw new OperationPendingError(`The operation ${describe(ref)} is pending and nobody drives it now. Call it again by its name, or operations.resume().`, { operation: infoOf(now), nextAttemptAt: now.nextAttemptAt });
    }
    const outcome: CallResult = now ? { kind: 'stored', head: now } : { kind: 'lost', head: undefined };
    return present(outcome, 'throw');
  };

  const cancel: Operations['cancel'] = async ref => {
    const head = await need(ref);
    const neverSent = head.firstSentAt === undefined;
    const now = await changed(head, neverSent ? { type: 'cancel' } : { type: 'doubt', reason: 'cancelled after it may have been sent' });
    if (!neverSent) events.inDoubt(now);
    return recordOf(now);
  };

  /** A row that cannot be read has no state to go on from: what a person says of it replaces it, or removes it. */
  const replace = async (head: Head, verdict: Reconciliation, answer: Answer): Promise<OperationRecord> => {
    const name = head.id.startsWith('name:') ? head.id.slice('name:'.length) : undefined;
    await records.remove(head);
    if (verdict === 'not-applied') return recordOf({ ...head, name, state: 'cancelled', past: [] });
    const target = options.target(name ?? head.id, head.scope);
    const identity = { client: head.client, scope: head.scope, id: head.id, name, key: target.keyOf(1), keySource: target.keySource, elsewhere: true };
    const { head: begun } = await records.begin({ ...identity, keyWindow: settings.keyWindow, state: 'in_doubt', reason: 'corrupt' });
    return recordOf(await changed(begun ?? head, { type: 'reconcile', applied: true, answer }));
  };

  const reconcile: Operations['reconcile'] = async (ref, verdict) => {
    const head = await need(ref);
    const answer = verdict instanceof Response ? await receive(verdict) : NO_ANSWER;
    if (head.unreadable !== undefined) return replace(head, verdict, answer);
    if (!(verdict instanceof Response) && verdict !== 'applied' && verdict !== 'not-applied') throw new TypeError(`reconcile takes 'applied', 'not-applied' or the Response that proves it, not ${JSON.stringify(verdict)}.`);
    if (head.shelf === 'settled') throw impossible(head, 'reconcile');
    const quietAt = (head.lastSentAt ?? head.firstSentAt ?? head.createdAt) + settings.maxServerTime;
    const driven = head.lease !== undefined && !(await records.isFree(head));
    if (verdict === 'not-applied' && head.firstSentAt !== undefined && (driven || records.now() < quietAt)) {
      throw new SamekeyError('TOO_EARLY', `The server may still be at work on operation ${describe(ref)}: "not applied" counts from ${new Date(quietAt).toISOString()} on (lastSentAt + maxServerTime), and while nobody drives it. Ask again then.`, { operation: infoOf(head) });
    }
    const now = await changed(head, { type: 'reconcile', applied: verdict !== 'not-applied', answer });
    events.settled(now, true);
    return recordOf(now);
  };

  return {
    get: async ref => {
      const head = await find(ref);
      return head && recordOf(head);
    },
    key: async (name, { scope: given } = {}) => {
      const target = options.target(name, assertScope(given ?? (await options.scope()), name));
      const { client, scope, id, keySource } = target;
      const { done, head } = await records.begin({ client, scope, id, name, key: target.keyOf(1), keySource, elsewhere: true, keyWindow: settings.keyWindow });
      if (done && head) return head.key;
      if (head) assertReadable(head);
      return head?.elsewhere ? head.key : (await changed(head as Head, { type: 'hand-out' })).key;
    },
    result,
    list: async function* ({ state, scope } = {}) {
      const open = state === undefined || state === 'pending' || state === 'in_doubt';
      const settled = state === undefined || !(state === 'pending' || state === 'in_doubt');
      for await (const head of heads([...(open ? ['open' as const] : []), ...(settled ? ['settled' as const] : [])], scope)) {
        if (state === undefined || head.state === state) yield recordOf(head);
      }
    },
    resume: options.resume,
    start: options.start,
    cancel,
    reconcile,
    forget: async ({ scope }) => {
      const unsettled: OperationInfo[] = [];
      let erased = 0;
      // One head at a time and again until none is left: a driver may write between reading and erasing.
      for (let again = true; again; ) {
        again = false;
        for await (const head of heads(['open', 'settled'], scope)) {
          if (!(await records.remove(head))) {
            again = true;
            continue;
          }
          erased += 1;
          if (head.shelf === 'open') unsettled.push(infoOf(head));
        }
      }
      return { erased, unsettled };
    },
  };
};

