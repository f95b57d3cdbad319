import { receive, sameAnswer, toResponse, type ReceivedAnswer } from './answer.js';
import type { Clock } from './clock.js';
import type { Head, HeaderList } from './operation.js';
import { hasOwnCode, keyHeaderValue, meaningsOf, type Meaning, type Profile } from './profiles/profile.js';
import type { Acceptance, AnswerOutcome, Outcome } from './retry.js';
import { timedOut, within } from './within.js';

/** The network: `fetch`, or what stands for it. */
export type Fetch = (request: Request, init?: RequestInit) => Promise<Response>;

/** What the caller's `accept` is asked with. */
export type Accept = (response: Response, request: { readonly method: string; readonly url: string }) => Acceptance | undefined | Promise<Acceptance | undefined>;

/** Says whether what is there already is what the request asks for. Both are unread. */
export type Compare = (resource: Response, request: Request) => boolean | Promise<boolean>;

/** Which refusals the caller declares to be stored under the key: statuses, or a test. */
export type StoredRefusals = readonly number[] | ((response: Response) => boolean);

export interface SendOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  readonly fetch: Fetch;
  readonly accept?: Accept | undefined;
  readonly compare?: Compare | undefined;
  readonly storedRefusals?: StoredRefusals | undefined;
}

/** One attempt, as the wire needs it. */
export interface Attempt {
  readonly head: Head;
  readonly credentials: HeaderList;
  /** ms. */
  readonly timeout: number;
  /** Ends the attempt from outside: the client is closing. */
  readonly signal: AbortSignal;
  /** What the caller passed to its fetch beyond the standard. */
  readonly init?: RequestInit | undefined;
  /** The answer before, to tell an answer that is garbled every time from one that was damaged once. */
  readonly previous?: ReceivedAnswer | undefined;
}

export interface Sent {
  readonly outcome: Outcome;
  readonly answer?: ReceivedAnswer | undefined;
  /** Why there is no answer. */
  readonly error?: unknown;
}

/** Hops within one attempt; more is a loop. */
const MAX_HOPS = 5;

/** Codes of Node that prove that no connection was made, so that nothing can have arrived. */
const NEVER_LEFT: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

/** Where there was a connection already, the same codes say that it broke, and prove nothing. */
const ON_CONNECTION: ReadonlySet<unknown> = new Set(['read', 'write', 'writev', 'shutdown']);

/** Deeper than any chain of causes; one that leads back to itself must end. */
const MAX_CAUSES = 16;

interface Cause {
  readonly cause?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
}

const provesNotSent = (error: unknown): boolean => {
  let cause = error as Cause | null | undefined;
  for (let depth = 0; cause && depth < MAX_CAUSES; depth += 1) {
    if (NEVER_LEFT.has(cause.code)) return !ON_CONNECTION.has(cause.syscall);
    cause = cause.cause as Cause | null | undefined;
  }
  return false;
};

const toRequest = (url: string, { head, credentials }: Attempt, { header, bodyField, firstSentHeader, quoting }: Profile, signal: AbortSignal): Request => {
  const { snapshot, request: body, key } = head;
  const headers = new Headers((snapshot?.headers ?? []) as [string, string][]);
  for (const [name, value] of credentials) headers.set(name, value);
  if (snapshot?.contentType !== undefined) headers.set('content-type', snapshot.contentType);
  if (header) headers.set(header, keyHeaderValue(key, quoting));
  // Of an adopted key the caller may know better when it was sent first.
  if (firstSentHeader && !headers.has(firstSentHeader)) headers.set(firstSentHeader, new Date(head.firstSentAt ?? 0).toUTCString());
  return new Request(url, {
    method: snapshot?.method ?? 'POST',
    headers,
    body: bodyField ? bodyField.write(body, key) : body,
    signal,
    redirect: snapshot?.follow ? 'follow' : 'manual',
    ...(snapshot?.credentials && { credentials: snapshot.credentials }),
  });
};

/** Where a redirect that keeps method and body leads, if that is the same origin. */
const nextHop = (response: Response, url: string): string | undefined => {
  const location = response.headers.get('location');
  if (![307, 308].includes(response.status) || location === null || !URL.canParse(location, url)) return undefined;
  const target = new URL(location, url);
  return target.origin === new URL(url).origin ? target.href : undefined;
};

const numberOf = (json: unknown, name: string): number | undefined => {
  const value = (json as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'number' ? value : undefined;
};

/** Whether a problem says that a new key would (not) be safe. */
export const safeNewKey = (json: unknown): unknown => (json as { safe_new_key?: unknown } | null | undefined)?.safe_new_key;

/** Sends the bytes of a head, and says what came of it. It never throws: no answer is an outcome too. */
export type Send = (attempt: Attempt, accept: Accept | undefined) => Promise<Sent>;

export const createSend = ({ clock, profile, fetch, accept, compare, storedRefusals }: SendOptions): Send => {
  const isDeclaredStored = (answer: ReceivedAnswer): boolean =>
    typeof storedRefusals === 'function' ? storedRefusals(toResponse(answer, answer.headers)) : storedRefusals?.includes(answer.meta.status) === true;

  const judge = async (answer: ReceivedAnswer, { head, previous }: Attempt, ask: Accept | undefined): Promise<AnswerOutcome> => {
    const { status } = answer.meta;
    const meanings: Set<Meaning> = new Set(meaningsOf(profile, { status, headers: answer.headers, json: answer.json }));
    if (status >= 400 && status < 500 && isDeclaredStored(answer)) meanings.add('stored');
    const whole = answer.complete && (!answer.garbled || meanings.has('replayed') || sameAnswer(previous, answer));
    const snapshot = { method: head.snapshot?.method ?? '', url: head.snapshot?.url ?? '' };
    return {
      kind: 'answer',
      status,
      whole,
      meanings,
      accepted: whole && status > 0 ? await ask?.(toResponse(answer, answer.headers), snapshot) : undefined,
      retryAfter: answer.headers.get('retry-after'),
      ownCode: hasOwnCode(answer.json),
      originalStatus: numberOf(answer.json, 'original_status'),
      unsafeNewKey: safeNewKey(answer.json) === false,
    };
  };

  const exchange = async (attempt: Attempt, signal: AbortSignal): Promise<Response> => {
    let url = attempt.head.snapshot?.url ?? '';
    for (let hop = 0; ; hop += 1) {
      const response = await fetch(toRequest(url, attempt, profile, signal), attempt.init);
      const next = hop < MAX_HOPS ? nextHop(response, url) : undefined;
      if (next === undefined) return response;
      await response.body?.cancel();
      url = next;
    }
  };

  /** The network and what the application says of an answer each get the time of an attempt. */
  const inTime = <T>({ timeout: ms, signal }: Attempt, what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const late = new AbortController();
    return within({ clock, ms, expired: timedOut(`${what} within ${ms} ms`), signal }, work(late.signal), reason => late.abort(reason));
  };

  /** Looks at what an answer says is there already: that is the answer which the caller wants. */
  const withResource = async (attempt: Attempt, { json }: ReceivedAnswer, outcome: AnswerOutcome, signal: AbortSignal): Promise<Sent | undefined> => {
    const asked = toRequest(attempt.head.snapshot?.url ?? '', attempt, profile, signal);
    const request = profile.resourceOf?.(json, asked);
    const answer = request && (await receive(await fetch(request, attempt.init)));
    const resource = answer?.complete && !answer.garbled ? toResponse(answer) : undefined;
    if (!resource?.ok) return undefined;
    const isSame = profile.comparesBodies || (await compare?.(resource, asked));
    return { answer, outcome: { ...outcome, accepted: isSame ? 'succeeded' : undefined } };
  };

  return async (attempt, ask = accept) => {
    const { aborted, reason } = attempt.signal;
    if (aborted) return { outcome: { kind: 'no-answer', sent: false }, error: reason };
    let arrived = false;
    try {
      const answer = await inTime(attempt, 'No answer', signal => exchange(attempt, signal).then(receive));
      arrived = true;
      const outcome = await (ask ? inTime(attempt, 'accept did not answer', () => judge(answer, attempt, ask)) : judge(answer, attempt, ask));
      if (!outcome.meanings.has('already-done') || outcome.accepted) return { answer, outcome };
      const seen = await inTime(attempt, 'No answer', signal => withResource(attempt, answer, outcome, signal)).catch(() => undefined);
      return seen ?? { answer, outcome: { ...outcome, meanings: new Set(['should-retry']) } };
    } catch (error) {
      // What `accept` throws while it looks at an answer proves nothing about the request.
      return { outcome: { kind: 'no-answer', sent: arrived || !provesNotSent(error) }, error };
    }
  };
};
