import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { newKey } from '../../key.js';
import { createFile, ensureDirectory, openFile } from './database.js';
import { isBusy } from './failure.js';

/** A lock file was taken for a dead owner's between its creation and its lock; more often than this is no accident, even when many processes start at once. */
const MAX_TRIES = 20;

/** What {@link newKey} makes; nothing else may become part of a path. */
const OWNER = /^file:([\da-f-]{36})$/;

/** Who lives among those that share a directory. */
export interface Owners {
  own(): string;
  liveness(owner: string): 'alive' | 'dead' | 'unknown';
  /** Ends the own owner; the next `own()` is another one. */
  release(): void;
}

/**
 * An owner is an empty SQLite file that its process keeps exclusively locked: Node has no file locks, SQLite does. The
 * operating system frees the lock when the process is dead, however it died, and keeps it while the process is only
 * paused.
 */
export const fileOwners = (directory: string): Owners => {
  const folder = join(directory, 'owners');
  let held: { readonly id: string; readonly lock: DatabaseSync } | undefined;

  const pathOf = (id: string): string => join(folder, `${id}.lock`);

  const isThere = (id: string): boolean => existsSync(pathOf(id));

  /** The lock, or undefined when somebody has it. @throws when the file is gone */
  const take = (id: string): DatabaseSync | undefined => {
    const lock = openFile(pathOf(id), 'rw');
    try {
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'); // Nothing is ever written, so no journal file either.
      return lock;
    } catch (error) {
      lock.close();
      if (isBusy(error)) return undefined;
      throw error;
    }
  };

  /** Removes the file while the lock is held, so that nobody can take what is about to go away. */
  const bury = (id: string, lock: DatabaseSync): void => {
    if (process.platform !== 'win32') rmSync(pathOf(id), { force: true });
    lock.close();
    // Windows removes no open files.
    rmSync(pathOf(id), { force: true });
  };

  const isAlive = (id: string): boolean => {
    if (!isThere(id)) return false;
    try {
      const lock = take(id);
      if (lock) bury(id, lock);
      return lock === undefined;
    } catch {
      return isThere(id); // Gone meanwhile: dead. Still there but not to be opened: nobody may be called dead for that.
    }
  };

  /** A fresh lock file; undefined when a process that starts at the same moment took it for a dead owner's. */
  const create = (id: string): DatabaseSync | undefined => {
    createFile(pathOf(id));
    let lock: DatabaseSync | undefined;
    try {
      lock = take(id);
    } catch (error) {
      if (isThere(id)) throw error;
    }
    if (isThere(id)) return lock;
    lock?.close();
    return undefined;
  };

  const acquire = (): { id: string; lock: DatabaseSync } => {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const id = newKey();
      const lock = create(id);
      if (lock) return { id, lock };
    }
    throw new Error(`No lock file in ${folder} could be held. Is something deleting files there?`);
  };

  return {
    own() {
      if (!held) {
        ensureDirectory(folder);
        for (const name of readdirSync(folder)) isAlive(basename(name, '.lock')); // Buries the dead, so that their files do not pile up.
        held = acquire();
      }
      return `file:${held.id}`;
    },
    liveness(owner) {
      const id = OWNER.exec(owner)?.[1];
      if (id === undefined) return 'unknown';
      if (id === held?.id) return 'alive';
      ensureDirectory(folder);
      return isAlive(id) ? 'alive' : 'dead';
    },
    release() {
      if (held) bury(held.id, held.lock);
      held = undefined;
    },
  };
};
