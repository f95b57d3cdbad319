import { SamekeyError, StoreCorruptError, StoreFullError, StoreUnavailableError } from '../../errors.js';

/** Primary result codes of SQLite that ask for different things of the caller. */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;
/** Out of memory, read only, disk error, cannot open, no permission, protocol: nothing that one write is to blame for. */
const OUT_OF_REACH: ReadonlySet<number> = new Set([3, 7, 8, 10, 14, 15, 23]);

/** An extended code (`SQLITE_IOERR_SHMMAP`, say) carries its primary one in the lowest byte. */
const codeOf = (error: unknown): number => ((error as { errcode?: number } | null)?.errcode ?? 0) & 0xff;

/** Somebody else is writing; trying again soon is all it takes. */
export const isBusy = (error: unknown): boolean => codeOf(error) === BUSY || codeOf(error) === LOCKED;

export const corrupt = (path: string, why: string, cause?: unknown): StoreCorruptError =>
  new StoreCorruptError(
    `${path} cannot be read: ${why}. It was left as it is, because corrupt is not empty: operations whose outcome is unknown may be in it. ` +
      'Restore it from a backup, or repair it with the sqlite3 shell (.recover); only if nothing in it matters any more, move it away together with its -wal and -shm files.',
    { cause },
  );

const full = (path: string, cause: Error): StoreFullError =>
  new StoreFullError(`${path} has no room left (${cause.message}). Free disk space, raise maxBytes, or forget settled operations; what is stored is intact.`, { cause });

export const gone = (path: string): StoreUnavailableError =>
  new StoreUnavailableError(
    `${path} was deleted or replaced while this process had it open. Nothing was written, and what was in it is out of reach. ` +
      'Keep the directory for as long as a process uses it; the next call opens what is there now.',
  );

const outOfReach = (path: string, cause: Error): StoreUnavailableError =>
  new StoreUnavailableError(`${path} cannot be used (${cause.message}). Check that the directory exists, is writable for this user and is on a healthy disk.`, { cause });

/** An error of SQLite or of the file system in the words of this package; busy ones, and all others, stay as they are. */
export const translate = (error: unknown, path: string): unknown => {
  if (error instanceof SamekeyError || !(error instanceof Error)) return error;
  const code = codeOf(error);
  if (code === CORRUPT || code === NOT_A_DATABASE) return corrupt(path, error.message, error);
  const { syscall, code: name } = error as NodeJS.ErrnoException;
  if (code === FULL || name === 'ENOSPC' || name === 'EDQUOT') return full(path, error);
  return OUT_OF_REACH.has(code) || syscall !== undefined ? outOfReach(path, error) : error;
};

const CODES = { STORE_CORRUPT: StoreCorruptError, STORE_FULL: StoreFullError, STORE_UNAVAILABLE: StoreUnavailableError } as const;

type Code = 'STORE_CORRUPT' | 'STORE_FULL' | 'STORE_UNAVAILABLE';

/** An error as it crosses from one thread to another, where classes are lost. */
export interface Failure {
  readonly code?: Code;
  readonly message: string;
}

export const toFailure = (error: unknown): Failure => {
  const { code, message } = error as { code?: string; message: string };
  return { message, ...(code !== undefined && code in CODES && { code: code as Code }) };
};

export const fromFailure = ({ code, message }: Failure): Error => (code === undefined ? new Error(message) : new CODES[code](message));
