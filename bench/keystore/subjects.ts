import { closeSync, fdatasyncSync, fsyncSync, openSync, renameSync, writeFileSync, writeSync, writevSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { FileKeyStoreOptions } from '../../src/keystore/file.js';
import type { Durability, StoredHead } from '../../src/keystore/keystore.js';
import type { Operation, Subject } from './load.js';

/** How many bytes of data a head is, without anything a store adds. */
const bytesOf = (head: StoredHead): number => JSON.stringify(head).length + (head.request?.byteLength ?? 0) + (head.response?.byteLength ?? 0);

/**
 * What no store can beat: the same bytes appended to one file, one write and one fdatasync per turn of the event loop. No
 * encoding, no index, no reading back.
 */
export const floor = (directory: string, supply: readonly Operation[]): Subject => {
  const file = openSync(join(directory, 'floor'), 'a');
  const buffers = new Map(supply.flatMap(({ begun, settled }) => [begun, settled].map(head => [head, Buffer.alloc(bytesOf(head), 65)] as const)));
  let queue: { bytes: Buffer; resolve: () => void }[] = [];
  const flush = (): void => {
    const batch = queue;
    queue = [];
    writevSync(file, batch.map(({ bytes }) => bytes));
    fdatasyncSync(file);
    for (const { resolve } of batch) resolve();
  };
  const append = (head: StoredHead): Promise<void> =>
    new Promise(resolve => {
      if (queue.length === 0) setImmediate(flush);
      queue.push({ bytes: buffers.get(head) as Buffer, resolve });
    });
  return { begin: ({ begun }) => append(begun), settle: ({ settled }) => append(settled), close: async () => closeSync(file) };
};

const ensureOk = ([result]: { kind: string }[]): void => {
  if (result?.kind !== 'ok') throw new Error(`The store answered ${JSON.stringify(result)}`);
};

export const samekey = (directory: string, settle: Durability, options: FileKeyStoreOptions = {}): Subject => {
  const store = fileKeyStore(join(directory, 'store'), options);
  return {
    begin: ({ begun }) => store.commit([{ ref: begun, expect: 'absent', next: begun }], 'strict').then(ensureOk),
    settle: ({ begun, settled }) => store.commit([{ ref: begun, expect: begun.version, next: settled }], settle).then(ensureOk),
    close: () => store.close(),
  };
};

const jsonOf = (head: StoredHead): string => JSON.stringify({ ...head, request: head.request && Buffer.from(head.request).toString('base64'), response: head.response && Buffer.from(head.response).toString('base64') });

/** The same engine used in the usual way: one table, one statement per transaction. */
export const oneStatement = (directory: string): Subject => {
  const database = new DatabaseSync(join(directory, 'one.db'));
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE operation (id TEXT PRIMARY KEY, json TEXT NOT NULL)');
  const insert = database.prepare('INSERT INTO operation VALUES (?, ?)');
  const update = database.prepare('UPDATE operation SET json = ? WHERE id = ?');
  return {
    begin: async ({ begun }) => insert.run(begun.id, jsonOf(begun)),
    settle: async ({ settled }) => update.run(jsonOf(settled), settled.id),
    close: async () => database.close(),
  };
};

const writeWhole = (directory: string, name: string, text: string): void => {
  const path = join(directory, name);
  const file = openSync(`${path}.tmp`, 'w');
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
  renameSync(`${path}.tmp`, path);
  const folder = openSync(directory, 'r');
  fsyncSync(folder);
  closeSync(folder);
};

/** One file per operation: temporary file, fsync, rename, fsync of the directory. */
export const filePerOperation = (directory: string): Subject => {
  const write = async (head: StoredHead): Promise<void> => writeWhole(directory, encodeURIComponent(head.id), jsonOf(head));
  return { begin: ({ begun }) => write(begun), settle: ({ settled }) => write(settled), close: async () => {} };
};

/** So many settled operations are kept in the one JSON file; a file that only grows would be slower still. */
const KEPT = 1000;

/** All operations in one JSON file, written anew for each step. */
export const wholeJson = (directory: string, supply: readonly Operation[]): Subject => {
  const all = new Map(supply.slice(-KEPT).map(({ settled }) => [settled.id, jsonOf(settled)]));
  const write = async (head: StoredHead): Promise<void> => {
    all.set(head.id, jsonOf(head));
    if (all.size > KEPT) all.delete(all.keys().next().value as string);
    writeWhole(directory, 'all.json', `{${[...all].map(([id, json]) => `${JSON.stringify(id)}:${json}`).join()}}`);
  };
  writeFileSync(join(directory, 'all.json'), '{}');
  return { begin: ({ begun }) => write(begun), settle: ({ settled }) => write(settled), close: async () => {} };
};
