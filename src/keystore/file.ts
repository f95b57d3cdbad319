import { resolve } from 'node:path';
import { StoreUnavailableError, isSamekeyError } from '../errors.js';
import { batched } from './batcher.js';
import { adaptiveCommitter, mainCommitter, workerCommitter } from './file/committer.js';
import type { Committer } from './file/committer.js';
import { databasePath, ensureDirectory, openDatabase } from './file/database.js';
import { openEngine } from './file/engine.js';
import type { Engine } from './file/engine.js';
import { translate } from './file/failure.js';
import { canShare, thisMachine, unsafeFileSystem } from './file/machine.js';
import type { Machine } from './file/machine.js';
import { fileOwners } from './file/owners.js';
import { patience } from './file/patience.js';
import { decode, decodeResult, encodeWrite } from './file/rows.js';
import type { Tuning } from './file/schema.js';
import type { KeyStore, StoredHead, WriteResult } from './keystore.js';

export type { Machine };

export interface FileKeyStoreOptions {
  /**
   * Where commits run. `auto`: on the calling thread, until the disk turns out to be slow or another process writes too;
   * then on a thread of their own. @default 'auto'
   */
  readonly thread?: 'auto' | 'main' | 'worker';
  /** Bytes that the database file may take; beyond them a write fails with `StoreFullError`. @default as much as the disk has */
  readonly maxBytes?: number;
  /** For tests: another machine than this one. */
  readonly machine?: Partial<Machine>;
}

/** What exists while the store is open. */
interface Opened {
  readonly engine: Engine;
  readonly committer: Committer;
}

/** Throws when SQLite's shared memory and locks cannot be trusted where the directory is. */
const assertSafe = (machine: Machine, directory: string): void => {
  const unsafe = unsafeFileSystem(machine, directory);
  if (unsafe === undefined) return;
  throw new StoreUnavailableError(
    `${directory} is on ${unsafe}, where SQLite's shared memory and locks cannot be trusted and databases break without a word. ` +
      'Give the key store a directory on a local disk (in a container: a volume, not a bind mount).',
  );
};

/**
 * Heads in one SQLite database in `directory` (`samekey.db`), shared by all processes of this host that name the same
 * directory. A strict commit is on disk when it is acknowledged; commits of one turn of the event loop share one sync.
 * The directory is created, private to the user, at the first call.
 *
 * @throws TypeError for an empty `directory`; StoreUnavailableError from every method when the directory cannot be used, is on a network or virtual-machine
 * file system, or was written by a newer version; StoreCorruptError when what is there cannot be read
 */
export const fileKeyStore = <H extends StoredHead = StoredHead>(directory: string, options: FileKeyStoreOptions = {}): KeyStore<H> => {
  // Resolved, it would be the current directory, wherever the process happens to be started: another store each time.
  if (directory === '') throw new TypeError("The directory of fileKeyStore is ''. Name a directory of its own, like './keys'; if the name comes from the environment, it is not set.");
  const { thread = 'auto', maxBytes } = options;
  const machine: Machine = { ...thisMachine, ...options.machine };
  const folder = resolve(directory);
  const path = databasePath(folder);
  const tuning: Tuning = { exclusive: !canShare(machine), fullSync: machine.platform === 'darwin', maxBytes };
  const owners = fileOwners(folder);
  const patiently = patience(path, machine);
  let opening: Promise<Opened> | undefined;

  const open = async (): Promise<Opened> => {
    ensureDirectory(folder);
    assertSafe(machine, folder);
    const engine = await patiently(() => openEngine(openDatabase(path, tuning), path, machine.clock));
    return { engine, committer: committerFor(engine) };
  };

  const committerFor = (engine: Engine): Committer => {
    if (thread === 'main' || tuning.exclusive) return mainCommitter(engine, patiently);
    return thread === 'worker' ? workerCommitter({ path, tuning }) : adaptiveCommitter(engine, patiently, { path, tuning });
  };

  /** A store that failed as a whole is let go, so that the next call finds out anew. */
  const release = async (): Promise<void> => {
    const last = opening;
    opening = undefined;
    const opened = await last?.catch(() => undefined);
    await opened?.committer.close().catch(() => undefined);
    opened?.engine.close();
  };

  const use = async <T>(work: (opened: Opened) => T | Promise<T>): Promise<T> => {
    try {
      return await work(await (opening ??= open()));
    } catch (error) {
      const known = translate(error, path);
      if (!isSamekeyError(known, 'STORE_FULL')) await release().catch(() => undefined);
      throw known;
    }
  };

  const read = <T>(work: (engine: Engine) => T): Promise<T> => use(({ engine }) => patiently(() => work(engine)));

  return batched<H>({
    info: { engine: 'file (node:sqlite)', survives: 'power', shared: 'host' },
    get: ref => read(engine => engine.get(ref)).then(row => row && (decode(row) as H)),
    scan: query => read(engine => engine.scan(query)).then(rows => rows.map(decode) as H[]),
    countOpen: client => read(engine => engine.countOpen(client)),
    latest: () => read(engine => engine.latest()),
    commit: (writes, durability) => {
      const rows = writes.map(encodeWrite);
      return use(({ committer }) => committer.commit(rows, durability)).then(results => results.map(decodeResult) as WriteResult<H>[]);
    },
    owner: () => use(() => owners.own()),
    liveness: owner => use(() => owners.liveness(owner)),
    async close() {
      owners.release();
      await release();
    },
  });
};
