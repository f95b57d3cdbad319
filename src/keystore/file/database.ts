import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StoreUnavailableError } from '../../errors.js';
import { newKey } from '../../key.js';
import { corrupt, isBusy, translate } from './failure.js';
import { APPLICATION_ID, CREATE, SCHEMA_VERSION, pragmas } from './schema.js';
import type { Tuning } from './schema.js';

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

export const databasePath = (directory: string): string => join(directory, 'samekey.db');

/**
 * Opens an existing file only: a plain path would create one, and bring back what somebody else has just removed. No
 * busy timeout, because SQLite would sleep on the thread that calls it; who waits does so outside.
 */
export const openFile = (path: string, mode: 'rw' | 'ro'): DatabaseSync => {
  const url = pathToFileURL(path);
  url.search = `?mode=${mode}`;
  return new DatabaseSync(url, { timeout: 0, readOnly: mode === 'ro' });
};

/** Creates a private empty file. @throws EEXIST when it is there */
export const createFile = (path: string): void => writeFileSync(path, '', { mode: FILE_MODE, flag: 'wx' });

export const ensureDirectory = (directory: string): void => {
  try {
    mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  } catch (error) {
    throw new StoreUnavailableError(`${directory} cannot be the directory of a key store: ${(error as Error).message}. Give a directory that this user may write to; it is created when it is absent.`, {
      cause: error,
    });
  }
};

/** Undefined when the file is absent. @throws EACCES and the like, which are not absence */
const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

const syncDirectory = (directory: string): void => {
  if (process.platform === 'win32') return; // Windows cannot open a directory, and needs no such sync.
  const handle = openSync(directory, 'r');
  fsyncSync(handle);
  closeSync(handle);
};

/** Makes the file under another name and links it into place whole, so that a file which is there was finished, and an empty one is damage. */
const create = (path: string): void => {
  const draft = `${path}.${newKey()}`;
  try {
    createFile(draft);
    const database = openFile(draft, 'rw');
    database.exec(`PRAGMA journal_mode = WAL; BEGIN; ${CREATE} COMMIT;`);
    database.close();
    linkSync(draft, path);
    syncDirectory(dirname(path));
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') return; // Another process was faster; its file is as good.
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
};

/** Only absence means empty. SQLite itself would take an empty file for a new database and throw away the WAL beside it. */
const ensureFile = (path: string): void => {
  const size = sizeOf(path);
  if (size === 0) throw corrupt(path, 'it has 0 bytes');
  if (size !== undefined) return;
  const walBytes = sizeOf(`${path}-wal`) ?? 0;
  if (walBytes > 0) throw corrupt(path, `it is missing, but its write-ahead log of ${walBytes} bytes is there`);
  create(path);
};

const pragma = (database: DatabaseSync, name: string): number => Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);

/** Looks before anything may be written: a connection that only reads leaves a foreign, newer or damaged file as it is. */
const inspect = (path: string): void => {
  const database = openFile(path, 'ro');
  try {
    if (pragma(database, 'application_id') !== APPLICATION_ID) {
      throw new StoreUnavailableError(`${path} is a SQLite database of another program. It was left alone; give the key store a directory of its own.`);
    }
    const version = pragma(database, 'user_version');
    if (version > SCHEMA_VERSION) {
      throw new StoreUnavailableError(`${path} was written by a newer samekey (tables of version ${version}; this one knows ${SCHEMA_VERSION}). It was left alone; update the samekey package of this process.`);
    }
    database.prepare('SELECT (SELECT 1 FROM open LIMIT 1), (SELECT 1 FROM settled LIMIT 1), value FROM meta').get();
  } finally {
    database.close();
  }
};

/**
 * Opens the store's database, creating it when it is absent.
 *
 * @throws StoreUnavailableError, StoreCorruptError; SQLite's busy error while another process is at it
 */
export const openDatabase = (path: string, tuning: Tuning): DatabaseSync => {
  try {
    ensureFile(path);
    inspect(path);
    const database = openFile(path, 'rw');
    database.exec(pragmas(tuning));
    return database;
  } catch (error) {
    throw isBusy(error) ? error : translate(error, path);
  }
};
