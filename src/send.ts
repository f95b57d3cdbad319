import { receive, sameAnswer, toResponse, type ReceivedAnswer } from './answer.js';
import type { Clock } from './clock.js';
import type { Head, HeaderList } from './operation.js';
import { hasOwnCode, meaningsOf, type Meaning, type Profile } from './profiles/profile.js';
import type { Acceptance, AnswerOutcome, Outcome } from './retry.js';
import { timedOut, within } from './within.js';

/** The network: `fetch`, or what stands for it. */
export type Fetch = (request: Request, init?: RequestInit) => Promise<Response>;

/** What the caller's `accept` is asked with. */
export type Accept = (response: Response, request: { readonly method: string; readonly url: string }) => Acceptance | undefined | Promise<Acceptance | undefined>;

/** Which refusals the caller declares to be stored under the key: statuses, or a test. */
export type StoredRefusals = readonly number[] | ((response: Response) => boolean);

export interface SendOptions {
  readonly clock: Clock;
  readonly profile: Profile;
  readonly fetch: Fetch;
  readonly accept?: Accept | undefined;
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

/** The key as the profile carries it. */
export const carry = (key: string, profile: Profile): string => (profile.quoting === 'sf-string' ? `"${key.replace(/["\\]/g, '\\$&')}"` : key);

const toRequest = (url: string, { head, credentials }: Attempt, profile: Profile, signal: AbortSignal): Request => {
  const { snapshot, request: body, key } = head;
  const stored = snapshot?.headers ?? [];
  // Those of authorize win over what was stored; twice the same name would be joined into one value.
  const headers = credentials.length === 0 ? [...stored] : [...stored.filter(([name]) => !credentials.some(([other]) => other === name)), ...credentials];
  if (snapshot?.contentType !== undefined) headers.push(['content-type', snapshot.contentType]);
  headers.push([profile.header, carry(key, profile)]);
  return new Request(url, {
    method: snapshot?.method ?? 'POST',
    headers: headers as [string, string][],
    body,
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

export const createSend = ({ clock, profile, fetch, accept, storedRefusals }: SendOptions): Send => {
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

  const transfer = (attempt: Attempt): Promise<ReceivedAnswer> => {
    const { timeout: ms, signal } = attempt;
    const expired = timedOut(`No answer within ${ms} ms`);
    const controller = new AbortController();
    return within({ clock, ms, expired, signal }, exchange(attempt, controller.signal).then(receive), reason => controller.abort(reason));
  };

  /** What looks at the answer is the application's too, and gets as long as the server did. */
  const judgeInTime = (answer: ReceivedAnswer, attempt: Attempt, ask: Accept | undefined): Promise<AnswerOutcome> => {
    if (!ask) return judge(answer, attempt, ask);
    const { timeout: ms, signal } = attempt;
    const expired = timedOut(`accept did not answer within ${ms} ms`);
    return within({ clock, ms, expired, signal }, judge(answer, attempt, ask));
  };

  return async (attempt, ask = accept) => {
    const { aborted, reason } = attempt.signal;
    if (aborted) return { outcome: { kind: 'no-answer', sent: false }, error: reason };
    let arrived = false;
    try {
      const answer = await transfer(attempt);
      arrived = true;
      return { answer, outcome: await judgeInTime(answer, attempt, ask) };
    } catch (error) {
      // What `accept` throws while it looks at an answer proves nothing about the request.
      return { outcome: { kind: 'no-answer', sent: arrived || !provesNotSent(error) }, error };
    }
  };
};
