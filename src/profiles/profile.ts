/** What an answer can say in a dialect, beside its status. */
export type Meaning =
  /** Another request under this key is still running. */
  | 'in-progress'
  /** The key was first used for another request. */
  | 'key-reused'
  /** This answer was given before; it is a stored one. */
  | 'replayed'
  /** The key layer has stored this answer: a retry under the key can only get it again. */
  | 'stored'
  /** The effect exists already; the answer names its resource. */
  | 'already-done'
  /** Executed under this key, but the answer is not available any more (`original_status` says what it was). */
  | 'result-unavailable'
  /** The server itself does not know. */
  | 'indeterminate'
  /** The server refuses the key because it is older than its window. */
  | 'key-expired'
  /** This endpoint does nothing with keys: a resend is a second effect. */
  | 'unprotected'
  /** Executed, but not recorded under the key. */
  | 'unrecorded'
  /** The server asks for a resend with the same key. */
  | 'should-retry'
  /** The server asks not to resend; it does not say that nothing happened. */
  | 'should-not-retry';

/** One way in which a dialect says something. All the conditions that are given must hold. */
export interface Signal {
  readonly means: Meaning;
  readonly status?: readonly number[];
  /** Matched against `code`, `type` (also its last segment), `title`, and `error.code`, `error.type`, `reason` of a JSON body. */
  readonly code?: RegExp;
  /** Header name and what its value must look like. */
  readonly header?: readonly [name: string, value: RegExp];
}

/** How a server of this dialect words its refusals: RFC 9457 problem details, or Stripe's `{ error: { type, code } }`. */
export type RefusalStyle = 'problem' | 'stripe';

/** A dialect of idempotency as data. Client, mock and server read the same object. */
export interface Profile {
  readonly name: string;
  /** Header that carries the key. */
  readonly header: string;
  /** `bare`: `Idempotency-Key: abc`; `sf-string`: `Idempotency-Key: "abc"` (RFC 9651). Servers of ours accept both. */
  readonly quoting: 'bare' | 'sf-string';
  /** Longest key, in characters. */
  readonly maxLength: number;
  /** Every character of a key must be one of these. */
  readonly alphabet: RegExp;
  /** ms for which the server promises at least to remember a key, counted from the first request. */
  readonly keyWindow: number;
  /** Methods that servers of this dialect enforce keys on, upper case. */
  readonly methods: readonly string[];
  /** Request headers that say whose effect it is, lower case; part of the fingerprint. */
  readonly identityHeaders: readonly string[];
  /** Whether the server compares the bodies of two requests under one key. */
  readonly comparesBodies: boolean;
  /** Whether servers of this dialect refuse a request without a key; otherwise it runs unprotected. */
  readonly keyRequired: boolean;
  /** What an expired key does: runs as a new request, or is refused. */
  readonly expiredKey: 'fresh' | 'refuse';
  /** Which answers a server of this dialect stores: all once execution began, or only what would not change on a retry (2xx, 3xx, most 4xx). */
  readonly stores: 'all' | 'deterministic';
  readonly refusals: RefusalStyle;
  /** How answers are read; several may match. */
  readonly signals: readonly Signal[];
}

/** An answer as profiles look at it. */
export interface AnswerView {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body, undefined when it is not JSON. */
  readonly json: unknown;
}

const text = (value: unknown): string[] => (typeof value === 'string' ? [value, value.slice(value.search(/[^/:#]*$/))] : []);

/** Every word in a JSON body that can be a code: of problem details, Stripe, and the like. */
const codesOf = (json: unknown): string[] => {
  const body = (json ?? {}) as Record<string, unknown>;
  const error = (body['error'] ?? {}) as Record<string, unknown>;
  return [body['code'], body['type'], body['title'], body['reason'], error['code'], error['type'], error['reason']].flatMap(text);
};

/** Whether a JSON body carries a `type` or `code` of its own, so that a status alone may not explain it. */
export const hasOwnCode = (json: unknown): boolean => codesOf(json).some(code => code !== '' && code !== 'about:blank' && code !== 'blank');

const holds = (signal: Signal, answer: AnswerView, codes: readonly string[]): boolean =>
  (signal.status?.includes(answer.status) ?? true) &&
  (signal.code === undefined || codes.some(code => signal.code?.test(code))) &&
  (signal.header === undefined || signal.header[1].test(answer.headers.get(signal.header[0]) ?? ''));

/** Everything an answer says in a dialect. */
export const meaningsOf = (profile: Profile, answer: AnswerView): ReadonlySet<Meaning> => {
  const codes = codesOf(answer.json);
  return new Set(profile.signals.filter(signal => holds(signal, answer, codes)).map(signal => signal.means));
};
