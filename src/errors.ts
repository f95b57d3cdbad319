import type { State } from './operation.js';

/** Whether the server can have seen the request when the error arose. */
export type Phase = 'not-sent' | 'unknown' | 'answered';

/** What `operationOf` tells of a call, a Response or an error. */
export interface OperationInfo {
  readonly client: string;
  readonly scope: string;
  /** Undefined for anonymous operations, and for adopted keys without a name. */
  readonly name: string | undefined;
  readonly generation: number;
  /** The Idempotency-Key, as the profile writes it, unquoted. */
  readonly key: string;
  readonly state: State;
  /** HTTP sends under this key so far, by every driver. */
  readonly attempts: number;
  readonly phase: Phase;
  /** Who gave the answer a second time: the server (a replay), the key store (no request was made), or nobody. */
  readonly replayed: 'server' | 'keystore' | false;
  /** False when what is said here could not be written to the store. */
  readonly durable: boolean;
  /** The effect is assumed, not confirmed: a DELETE that met 404 after an attempt whose answer was lost. */
  readonly assumed: boolean;
}

export interface SamekeyErrorOptions {
  readonly operation?: OperationInfo | undefined;
  readonly phase?: Phase | undefined;
  readonly cause?: unknown;
}

const BRAND = Symbol.for('samekey.error');

/** Base of every error that samekey makes. `code` never changes between versions; messages may. */
export class SamekeyError<Code extends string = string> extends Error {
  readonly code: Code;
  /** The operation in question, when there is one. Its `key` is what support teams of a provider ask for. */
  readonly operation: OperationInfo | undefined;
  readonly phase: Phase;

  constructor(code: Code, message: string, { operation, phase, cause }: SamekeyErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.operation = operation;
    this.phase = phase ?? operation?.phase ?? 'not-sent';
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** The name stands for another request: same client, scope and name, other fingerprint. Nothing was sent. */
export class OperationMismatchError extends SamekeyError<'OPERATION_MISMATCH'> {
  override readonly name: string = 'OperationMismatchError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('OPERATION_MISMATCH', message, options);
  }
}

/** The server says that the key was first used for another request. The operation is in doubt. */
export class KeyReusedError extends SamekeyError<'KEY_REUSED'> {
  override readonly name: string = 'KeyReusedError';
  readonly response: Response | undefined;
  constructor(message: string, options: SamekeyErrorOptions & { response?: Response | undefined } = {}) {
    super('KEY_REUSED', message, options);
    this.response = options.response;
  }
}

/** The waiting ended, the operation did not: it stays stored under its key and can be resumed. It is not a failure. */
export class OperationPendingError extends SamekeyError<'OPERATION_PENDING'> {
  override readonly name: string = 'OperationPendingError';
  /** When the next attempt may be made, ms since the epoch. */
  readonly nextAttemptAt: number | undefined;
  /** The last answer, when the last attempt had one. */
  readonly response: Response | undefined;
  constructor(message: string, options: SamekeyErrorOptions & { nextAttemptAt?: number | undefined; response?: Response | undefined } = {}) {
    super('OPERATION_PENDING', message, options);
    this.nextAttemptAt = options.nextAttemptAt;
    this.response = options.response;
  }
}

/** Nobody can tell whether the effect happened, and no resend would be safe. It leaves this state by `reconcile`. */
export class InDoubtError extends SamekeyError<'IN_DOUBT'> {
  override readonly name: string = 'InDoubtError';
  /** The answer that could not settle it, when there was one. */
  readonly response: Response | undefined;
  constructor(message: string, options: SamekeyErrorOptions & { response?: Response | undefined } = {}) {
    super('IN_DOUBT', message, options);
    this.response = options.response;
  }
}

/** The operation is settled, but its answer is not kept any more (or never was). It is not an empty answer. */
export class AnswerOmittedError extends SamekeyError<'ANSWER_OMITTED'> {
  override readonly name: string = 'AnswerOmittedError';
  readonly state: State;
  readonly status: number | undefined;
  readonly headers: Headers;
  constructor(message: string, options: SamekeyErrorOptions & { state: State; status?: number | undefined; headers?: Headers }) {
    super('ANSWER_OMITTED', message, options);
    this.state = options.state;
    this.status = options.status;
    this.headers = options.headers ?? new Headers();
  }
}

/** The endpoint redirected a keyed request in a way that cannot be followed safely. The operation is parked. */
export class RedirectedError extends SamekeyError<'REDIRECTED'> {
  override readonly name: string = 'RedirectedError';
  /** Where to, when the platform shows it (browsers do not). */
  readonly location: string | undefined;
  constructor(message: string, options: SamekeyErrorOptions & { location?: string | undefined } = {}) {
    super('REDIRECTED', message, options);
    this.location = options.location;
  }
}

/** A named operation was called without saying whose it is. */
export class ScopeMissingError extends SamekeyError<'SCOPE_MISSING'> {
  override readonly name: string = 'ScopeMissingError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('SCOPE_MISSING', message, options);
  }
}

/** The operation belongs to somebody this process may not act for (any more). Nothing was sent; it is kept. */
export class ForeignScopeError extends SamekeyError<'FOREIGN_SCOPE'> {
  override readonly name: string = 'ForeignScopeError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('FOREIGN_SCOPE', message, options);
  }
}

/** A protected call to an origin that was not declared. Nothing was sent. */
export class UndeclaredOriginError extends SamekeyError<'UNDECLARED_ORIGIN'> {
  override readonly name: string = 'UndeclaredOriginError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('UNDECLARED_ORIGIN', message, options);
  }
}

/** The store did not open, did not answer in time, or lost its connection for good. */
export class StoreUnavailableError extends SamekeyError<'STORE_UNAVAILABLE'> {
  override readonly name: string = 'StoreUnavailableError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('STORE_UNAVAILABLE', message, options);
  }
}

/** The store has no room: the platform's quota, the disk, or `maxUnsettled`. */
export class StoreFullError extends SamekeyError<'STORE_FULL'> {
  override readonly name: string = 'StoreFullError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('STORE_FULL', message, options);
  }
}

/** What is stored cannot be read. It is left where it is: corrupt is not empty. */
export class StoreCorruptError extends SamekeyError<'STORE_CORRUPT'> {
  override readonly name: string = 'StoreCorruptError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('STORE_CORRUPT', message, options);
  }
}

/** The body can be sent once only (a stream beyond `maxBodyBytes`), so a lost answer could not be asked for again. Nothing was sent. */
export class BodyNotReplayableError extends SamekeyError<'BODY_NOT_REPLAYABLE'> {
  override readonly name: string = 'BodyNotReplayableError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('BODY_NOT_REPLAYABLE', message, options);
  }
}

/** A key that the profile cannot carry: empty, too long, or with characters that headers lose. */
export class InvalidKeyError extends SamekeyError<'INVALID_KEY'> {
  override readonly name: string = 'InvalidKeyError';
  constructor(message: string, options?: SamekeyErrorOptions) {
    super('INVALID_KEY', message, options);
  }
}

interface ErrorByCode {
  OPERATION_MISMATCH: OperationMismatchError;
  KEY_REUSED: KeyReusedError;
  OPERATION_PENDING: OperationPendingError;
  IN_DOUBT: InDoubtError;
  ANSWER_OMITTED: AnswerOmittedError;
  REDIRECTED: RedirectedError;
  SCOPE_MISSING: ScopeMissingError;
  FOREIGN_SCOPE: ForeignScopeError;
  UNDECLARED_ORIGIN: UndeclaredOriginError;
  STORE_UNAVAILABLE: StoreUnavailableError;
  STORE_FULL: StoreFullError;
  STORE_CORRUPT: StoreCorruptError;
  BODY_NOT_REPLAYABLE: BodyNotReplayableError;
  INVALID_KEY: InvalidKeyError;
  /** There is no such operation in this store, scope and client. */
  NO_SUCH_OPERATION: SamekeyError<'NO_SUCH_OPERATION'>;
  /** "Not applied" was said while the server may still be at work. */
  TOO_EARLY: SamekeyError<'TOO_EARLY'>;
  /** What was asked for is not possible in the operation's state. */
  NOT_POSSIBLE: SamekeyError<'NOT_POSSIBLE'>;
  /** It was cancelled, or forgotten, before anything was known. */
  CANCELLED: SamekeyError<'CANCELLED'>;
}

/** The stable codes of the error family. */
export type ErrorCode = keyof ErrorByCode;

/**
 * Whether `error` is samekey's, also when it comes from another realm or another copy of the package, where `instanceof` fails.
 *
 * @example if (isSamekeyError(error, 'OPERATION_PENDING')) showPending(error.nextAttemptAt);
 */
export function isSamekeyError(error: unknown): error is SamekeyError;
export function isSamekeyError<Code extends ErrorCode>(error: unknown, code: Code): error is ErrorByCode[Code];
export function isSamekeyError(error: unknown, code?: string): boolean {
  const candidate = error as { [BRAND]?: boolean; code?: string } | null | undefined;
  return candidate?.[BRAND] === true && (code === undefined || candidate.code === code);
}
