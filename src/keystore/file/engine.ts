import { statSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { Clock } from '../../clock.js';
import type { Durability, HeadRef, ScanQuery, StoredHead } from '../keystore.js';
import { NEVER } from '../keystore.js';
import { gone, isBusy, translate } from './failure.js';
import type { Row, RowResult, RowWrite } from './rows.js';
import { COLUMNS } from './schema.js';

/** One connection with its statements. Everything is synchronous; who waits for a lock does so outside. */
export interface Engine {
  /** One transaction. @throws SQLite's busy error when another connection is writing; nothing was done then */
  commit(writes: readonly RowWrite[], durability: Durability): RowResult[];
  get(ref: HeadRef): Row | undefined;
  scan(query: ScanQuery): Row[];
  countOpen(client: string): number;
  latest(): number;
  /** ms that the last strict commit waited for the disk. */
  readonly syncTook: number;
  /** Whether another connection has written since this one was asked last. */
  othersWrote(): boolean;
  close(): void;
}

/** Between two notes of the highest time, each a page more to write. Key windows have minutes to spare. */
const LATEST_STEP_MS = 1000;

type Shelf = StoredHead['shelf'];

const REF = 'client = ? AND scope = ? AND id = ?';
const REF_AGAIN = 'client = ?1 AND scope = ?2 AND id = ?3';
const NAMES = COLUMNS.join(', ');
/** Without the ref: setting it, even to what it is, would write its index anew. */
const CHANGING = COLUMNS.slice(3);

const marks = (columns: readonly string[]): string => columns.map(() => '?').join(', ');

const select = (shelf: Shelf): string => `SELECT '${shelf}' AS shelf, ${NAMES} FROM ${shelf}`;

/** One page of a shelf. The first bound lets SQLite start in the index where the page before ended. */
export const scanSql = (shelf: Shelf, hasScope: boolean): string =>
  `${select(shelf)} WHERE client = ?1 AND due >= ?2 AND (due, scope, id) > (?2, ?3, ?4) AND due <= ?5 ${hasScope ? 'AND scope = ?7' : ''} ORDER BY due, scope, id LIMIT ?6`;

/**
 * In WAL mode NORMAL does not sync at a commit: what it wrote is synced with the next strict one. Executed anew each time and
 * never prepared, because SQLite carries out this pragma when it compiles it, not when the statement runs.
 */
const SYNCHRONOUS: Readonly<Record<Durability, string>> = { strict: 'PRAGMA synchronous = FULL', relaxed: 'PRAGMA synchronous = NORMAL' };

const OTHER = { open: 'settled', settled: 'open' } as const;

const shelfStatements = (database: DatabaseSync, shelf: Shelf) => ({
  /** A ref is unique over both tables; SQLite itself sees to one. */
  begin: database.prepare(
    `INSERT INTO ${shelf} (${NAMES}) SELECT ${COLUMNS.map((_, at) => `?${at + 1}`).join(', ')} WHERE NOT EXISTS (SELECT 1 FROM ${OTHER[shelf]} WHERE ${REF_AGAIN}) ON CONFLICT DO NOTHING`,
  ),
  insert: database.prepare(`INSERT INTO ${shelf} (${NAMES}) VALUES (${marks(COLUMNS)})`),
  update: database.prepare(`UPDATE ${shelf} SET (${CHANGING.join(', ')}) = (${marks(CHANGING)}) WHERE ${REF} AND version = ?`),
  remove: database.prepare(`DELETE FROM ${shelf} WHERE ${REF} AND version = ?`),
  scan: database.prepare(scanSql(shelf, false)),
  scanScope: database.prepare(scanSql(shelf, true)),
});

const did = (statement: StatementSync, values: readonly SQLInputValue[]): boolean => statement.run(...values).changes === 1;

const valuesOf = (row: Row): SQLInputValue[] => COLUMNS.map(name => row[name]);

const fileAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

const changesOf = (row: Row): SQLInputValue[] => CHANGING.map(name => row[name]);

export const openEngine = (database: DatabaseSync, path: string, clock: Clock): Engine => {
  const shelves = { open: shelfStatements(database, 'open'), settled: shelfStatements(database, 'settled') };
  const find = database.prepare(`${select('open')} WHERE ${REF} UNION ALL ${select('settled')} WHERE ${REF}`);
  const readLatest = database.prepare("SELECT value FROM meta WHERE name = 'latest'");
  const countOpen = database.prepare('SELECT count(*) AS number FROM open WHERE client = ?');
  const dataVersion = database.prepare('PRAGMA data_version');
  const raiseLatest = database.prepare("UPDATE meta SET value = max(value, ?) WHERE name = 'latest'");
  const [begin, end, rollback] = ['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'].map(sql => database.prepare(sql)) as [StatementSync, StatementSync, StatementSync];
  const file = fileAt(path);
  let durabilityNow: Durability | undefined;
  let latestKnown = 0;
  let syncTook = 0;
  const versionOf = (): unknown => dataVersion.get()?.['data_version'];
  let versionSeen = versionOf();

  // One statement over both tables, because between two a head could move from one to the other and be in neither.
  const get = ({ client, scope, id }: HeadRef): Row | undefined => find.get(client, scope, id, client, scope, id) as unknown as Row | undefined;

  const replace = (row: Row, expected: readonly SQLInputValue[]): boolean => {
    const { open, settled } = shelves;
    if (row.shelf === 'open') return did(open.update, [...changesOf(row), ...expected]) || (did(settled.remove, expected) && did(open.insert, valuesOf(row)));
    return (did(open.remove, expected) && did(settled.insert, valuesOf(row))) || did(settled.update, [...changesOf(row), ...expected]);
  };

  const isDone = ({ ref, expect, next }: RowWrite): boolean => {
    if (expect === 'absent') return next ? did(shelves[next.shelf].begin, valuesOf(next)) : get(ref) === undefined;
    const expected = [ref.client, ref.scope, ref.id, expect];
    return next ? replace(next, expected) : did(shelves.open.remove, expected) || did(shelves.settled.remove, expected);
  };

  const undo = (): void => {
    latestKnown = 0; // The raise is undone too.
    try {
      rollback.run();
    } catch {
      // SQLite itself has rolled back, as it does when the disk is full.
    }
  };

  const apply = (write: RowWrite): RowResult => (isDone(write) ? { kind: 'ok' } : { kind: 'conflict', row: get(write.ref) });

  const raise = (writes: readonly RowWrite[], results: readonly RowResult[]): void => {
    const written = writes.reduce((most, { next }, at) => (next && results[at]?.kind === 'ok' ? Math.max(most, next.written_at) : most), 0);
    if (written < latestKnown + LATEST_STEP_MS) return;
    raiseLatest.run(written);
    latestKnown = written;
  };

  const transaction = (writes: readonly RowWrite[], durability: Durability): RowResult[] => {
    const results = writes.map(apply);
    raise(writes, results);
    const before = clock.monotonic?.() ?? 0;
    end.run();
    if (durability === 'strict') syncTook = (clock.monotonic?.() ?? 0) - before;
    return results;
  };

  return {
    commit(writes, durability) {
      // SQLite goes on writing into a file that was deleted; what it acknowledges then survives nothing.
      if (fileAt(path) !== file) throw gone(path);
      if (durability !== durabilityNow) database.exec(SYNCHRONOUS[durability]);
      durabilityNow = durability;
      begin.run();
      try {
        return transaction(writes, durability);
      } catch (error) {
        undo();
        throw isBusy(error) ? error : translate(error, path);
      }
    },
    get: ref => get(ref),
    scan({ client, shelf, scope, dueBy = NEVER, after, limit }) {
      const bounds = [client, after?.due ?? -Infinity, after?.scope ?? '', after?.id ?? '', dueBy, limit];
      const { scan, scanScope } = shelves[shelf];
      return (scope === undefined ? scan.all(...bounds) : scanScope.all(...bounds, scope)) as unknown as Row[];
    },
    countOpen: client => Number(countOpen.get(client)?.['number']),
    latest: () => Number(readLatest.get()?.['value']),
    get syncTook() {
      return syncTook;
    },
    othersWrote() {
      const version = versionOf();
      const changed = version !== versionSeen;
      versionSeen = version;
      return changed;
    },
    close() {
      database.close();
    },
  };
};
