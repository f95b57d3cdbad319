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
  /** Matched against `code`, `type`, `title`, `reason`, `errorCode`, `issue` of a JSON body and of its `error`, `errors`, `details`; of a URI also its last segment. */
  readonly code?: RegExp;
  /** Header name and what its value must look like. */
  readonly header?: readonly [name: string, value: RegExp];
}

/** Whose words a server of this dialect refuses with: RFC 9457 problem details, or a provider's own error bodies. */
export type RefusalStyle = 'problem' | 'stripe' | 'adyen' | 'paypal' | 'square' | 'gocardless' | 'azure';

/** A member of a JSON body that carries the key; `bodyField(name)` makes one. */
export interface BodyField {
  readonly name: string;
  /**
   * The key in a body; undefined where there is none, or where the body is not one JSON object.
   *
   * @throws TypeError where the member is no string
   */
  read(body: ArrayBuffer | Uint8Array | null): string | undefined;
  /**
   * The body with the key in it, and to the byte as it was in all else.
   *
   * @throws TypeError for a body that is not one JSON object
   */
  write(body: ArrayBuffer | Uint8Array | null, key: string): ArrayBuffer;
}

/** A dialect of idempotency as data. Client, mock and server read the same object. */
export interface Profile {
  readonly name: string;
  /** Header that carries the key. A dialect without one has a `bodyField`. */
  readonly header?: string | undefined;
  /** Where the key travels in the JSON body. @default undefined: in the header */
  readonly bodyField?: BodyField | undefined;
  /** `bare`: `Idempotency-Key: abc`; `sf-string`: `Idempotency-Key: "abc"` (RFC 9651). Servers of ours accept both. */
  readonly quoting: 'bare' | 'sf-string';
  /** Header with the time of the first send (IMF-fixdate), the same on every attempt. @default undefined: none */
  readonly firstSentHeader?: string | undefined;
  /** Longest key, in characters. */
  readonly maxLength: number;
  /** What a key must look like. */
  readonly keyFormat: RegExp;
  /** Makes a key out of the UUID of an operation, where UUIDs are too long or have the wrong form. @default the UUID itself */
  readonly formatKey?: ((uuid: string) => string) | undefined;
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
  /** What a server says to a key where it enforces none: nothing, or 501 to what is not safe to repeat. @default 'ignored' */
  readonly unsupported?: 'ignored' | 'refused' | undefined;
  /** What an expired key does: runs as a new request, or is refused. */
  readonly expiredKey: 'fresh' | 'refuse';
  /**
   * Which answers a server of this dialect stores: all once execution began; only what would not change on a retry (2xx,
   * 3xx, most 4xx); only successes.
   */
  readonly stores: 'all' | 'deterministic' | 'success';
  /**
   * What a repeat gets: the first answer again; a refusal that names what is there already; what the resource looks like
   * now, where the server can tell. @default 'verbatim'
   */
  readonly replays?: 'verbatim' | 'conflict' | 'latest' | undefined;
  /** Whether answers carry the key in the header that it came in. @default false */
  readonly echoesKey?: boolean | undefined;
  readonly refusals: RefusalStyle;
  /** How answers are read; several may match. */
  readonly signals: readonly Signal[];
  /** Asks for the resource that an `already-done` answer to `request` names: a GET to the same origin, without the key. */
  readonly resourceOf?: ((json: unknown, request: Request) => Request | undefined) | undefined;
}

/** The key as the header carries it. */
export const keyHeaderValue = (key: string, quoting: Profile['quoting']): string => (quoting === 'sf-string' ? `"${key.replace(/["\\]/g, '\\$&')}"` : key);

/** An answer as profiles look at it. */
export interface AnswerView {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body, undefined when it is not JSON. */
  readonly json: unknown;
}

const text = (value: unknown): string[] => (typeof value === 'string' ? [value, value.replace(/^.*[/:#]/s, '')] : []);

/** Members that hold a code, and members that hold further errors: of problem details, Stripe, Adyen, PayPal, Square, GoCardless and their like. */
const CODE = /^(code|type|title|reason|errorCode|issue)$/;
const ERRORS = /^(errors?|details|\d+)$/;

/** As deep as `{ error: { errors: [{ reason }] } }`; a hostile body must not exhaust the stack. */
const MAX_DEPTH = 3;

/** Every word in a JSON body that can be a code. */
const codesOf = (json: unknown, depth = 0): string[] =>
  typeof json === 'object' && depth <= MAX_DEPTH
    ? Object.entries(json ?? {}).flatMap(([name, value]) => (CODE.test(name) ? text(value) : ERRORS.test(name) ? codesOf(value, depth + 1) : []))
    : [];

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
