import { statfsSync } from 'node:fs';
import type { Clock } from '../../clock.js';
import { systemClock } from '../../clock.js';
import { random } from '../../key.js';

/** What the file store believes of the machine it runs on, so that a test can show it another one. */
export interface Machine {
  readonly clock: Clock;
  /** A fraction in [0, 1), for jitter only. */
  random(): number;
  /** Of the SQLite library inside Node. */
  readonly sqliteVersion: string;
  readonly platform: string;
  /** The `f_type` of the file system that holds a directory. */
  fileSystemType(directory: string): number;
}

export const thisMachine: Machine = {
  clock: systemClock,
  random,
  sqliteVersion: process.versions['sqlite'] ?? '0',
  platform: process.platform,
  fileSystemType: directory => statfsSync(directory).type,
};

/**
 * File systems whose shared memory or locks do not hold between machines or across the boundary of a virtual machine.
 * SQLite databases on them have been seen to break without a word.
 */
const UNSAFE_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x65735546, 'FUSE or virtiofs'],
  [0x01021997, '9p'],
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
]);

/** The name of an unsafe file system, or undefined for one that can be used. */
export const unsafeFileSystem = (machine: Machine, directory: string): string | undefined =>
  UNSAFE_FILE_SYSTEMS.get(machine.fileSystemType(directory));

/** The first SQLite in which several connections may share a WAL file: before it, a reset of the WAL could lose pages. */
const SHARING_SINCE = [3, 51, 3] as const;

/** Whether several processes may have the database open at a time. */
export const canShare = ({ sqliteVersion }: Machine): boolean => {
  const parts = sqliteVersion.split('.').map(Number);
  const at = SHARING_SINCE.findIndex((wanted, index) => (parts[index] ?? 0) !== wanted);
  return at === -1 || (parts[at] ?? 0) > (SHARING_SINCE[at] ?? 0);
};
