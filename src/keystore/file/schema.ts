/** `same` in ASCII: says that a SQLite file is ours. */
export const APPLICATION_ID = 0x73616d65;

/** Version of the tables. A file with a higher one is refused and left alone. */
export const SCHEMA_VERSION = 1;

export const COLUMNS = ['client', 'scope', 'id', 'version', 'due', 'written_at', 'format', 'sum', 'head', 'request', 'response'] as const;

const columns = `
  client TEXT NOT NULL, scope TEXT NOT NULL, id TEXT NOT NULL,
  version NUMERIC NOT NULL, due NUMERIC NOT NULL, written_at NUMERIC NOT NULL, format NUMERIC NOT NULL, sum NUMERIC NOT NULL,
  head TEXT NOT NULL, request BLOB, response BLOB`;

/**
 * Open and settled heads lie apart, so that what start-up reads stays small; both in insertion order, so that a commit
 * writes few pages. Open heads are indexed in the very order of a scan, because many of them can be due at one time (never,
 * say). Settled ones hardly ever are, and there are many: their index ends with the time, and ties are sorted when read.
 */
const TABLES = `
  CREATE TABLE open (${columns}, UNIQUE (client, scope, id));
  CREATE INDEX open_due ON open (client, due, scope, id);
  CREATE TABLE settled (${columns}, UNIQUE (client, scope, id));
  CREATE INDEX settled_due ON settled (client, due);`;

export const CREATE: string = `
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
  ${TABLES}
  CREATE TABLE meta (name TEXT PRIMARY KEY, value NUMERIC NOT NULL) WITHOUT ROWID;
  INSERT INTO meta VALUES ('latest', 0);`;

/** 16 MB of WAL before a checkpoint: rarer and no longer than with the default of 4 MB, so it leaves the slowest percent of commits. */
const CHECKPOINT_PAGES = 4000;

export interface Tuning {
  /** One connection at a time, without shared memory. */
  readonly exclusive: boolean;
  /** macOS: fsync alone leaves data in the cache of the drive. */
  readonly fullSync: boolean;
  readonly maxBytes: number | undefined;
}

/** The size of a page of a new file, SQLite's default; `maxBytes` counts in these. */
const PAGE_BYTES = 4096;

/** What is set anew on every connection. Locking comes first: it must be known before the file is read. */
export const pragmas = ({ exclusive, fullSync, maxBytes }: Tuning): string => `
  PRAGMA locking_mode = ${exclusive ? 'EXCLUSIVE' : 'NORMAL'};
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
  PRAGMA secure_delete = ON;
  ${fullSync ? 'PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;' : ''}
  ${maxBytes === undefined ? '' : `PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / PAGE_BYTES))};`}`;
