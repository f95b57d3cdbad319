import { spawnSync } from 'node:child_process';
import { chmodSync, closeSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { isSamekeyError } from '../../src/errors.js';
import type { ErrorCode } from '../../src/errors.js';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { FileKeyStoreOptions } from '../../src/keystore/file.js';
import type { KeyStore } from '../../src/keystore/keystore.js';
import { begin, bytes, headOf, kindsOf, readAll, refOf, remove, times } from '../../src/testing/keystore/subject.js';
import { temporaryDirectory } from './support/processes.js';

const bodyOf = (at: number): ArrayBuffer => Uint8Array.from(Buffer.from(`body ${at}; `.repeat(200))).buffer;
const HEADS = times(60, at => headOf(refOf(`name:${String(at).padStart(2, '0')}`), { request: bodyOf(at) }));

/** A directory with a store in it that was closed properly. */
const filled = async (): Promise<{ directory: string; path: string }> => {
  const directory = temporaryDirectory();
  const store = fileKeyStore(directory);
  await store.commit(HEADS.map(begin));
  await store.close();
  return { directory, path: join(directory, 'samekey.db') };
};

/** The error that a call ends with. */
const errorOf = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    value => new Error(`It resolved with ${JSON.stringify(value)}`),
    (error: Error) => error,
  );

const overwrite = (path: string, at: number, content: Uint8Array): void => {
  const file = openSync(path, 'r+');
  writeSync(file, content, 0, content.length, at);
  closeSync(file);
};

/** Every call must say the same, and none may change the file. */
const expectRefusal = async (directory: string, code: ErrorCode, words: RegExp): Promise<void> => {
  const path = join(directory, 'samekey.db');
  const before = existsSync(path) ? readFileSync(path) : undefined;
  const calls: ((store: KeyStore) => Promise<unknown>)[] = [
    store => store.commit([begin(headOf(refOf('name:new')))]),
    store => store.get(refOf('name:00')),
    store => store.scan({ client: 'default', shelf: 'open', limit: 10 }),
    store => store.latest(),
  ];
  for (const call of calls) {
    const store = fileKeyStore(directory);
    const error = await errorOf(call(store));
    expect(error.message).toMatch(words);
    expect(isSamekeyError(error, code)).toBe(true);
    await store.close();
  }
  expect(existsSync(path) ? readFileSync(path) : undefined).toEqual(before);
};

describe('C58: corrupt is not empty', () => {
  it('a file that is not a database is refused and left as it is', async () => {
    const { directory, path } = await filled();
    writeFileSync(path, 'this was never a database '.repeat(1000));
    await expectRefusal(directory, 'STORE_CORRUPT', /cannot be read.*left as it is.*Restore/s);
  });

  it('C57: a file of zeros is refused', async () => {
    const { directory, path } = await filled();
    writeFileSync(path, Buffer.alloc(statSync(path).size));
    await expectRefusal(directory, 'STORE_CORRUPT', /cannot be read/);
  });

  it('C57: a truncated file is refused', async () => {
    const { directory, path } = await filled();
    truncateSync(path, Math.floor(statSync(path).size / 2));
    await expectRefusal(directory, 'STORE_CORRUPT', /cannot be read/);
  });

  it('C57: a file of 0 bytes is refused, with or without a log beside it', async () => {
    const { directory, path } = await filled();
    truncateSync(path, 0);
    await expectRefusal(directory, 'STORE_CORRUPT', /has 0 bytes/);
    writeFileSync(`${path}-wal`, Buffer.alloc(4096, 1));
    await expectRefusal(directory, 'STORE_CORRUPT', /has 0 bytes/);
    expect(readFileSync(`${path}-wal`)).toEqual(Buffer.alloc(4096, 1));
  });

  it('a missing file beside a log that was not written back is refused', async () => {
    const { directory, path } = await filled();
    rmSync(path);
    writeFileSync(`${path}-wal`, Buffer.alloc(4096, 1));
    await expectRefusal(directory, 'STORE_CORRUPT', /is missing, but its write-ahead log of 4096 bytes is there/);
  });

  it('overwritten pages are refused where they are met', async () => {
    const { directory, path } = await filled();
    const pages = statSync(path).size / 4096;
    for (let page = 2; page < pages; page++) overwrite(path, page * 4096, Buffer.alloc(4096, 0xa5));
    const before = readFileSync(path);
    const store = fileKeyStore(directory);
    expect(isSamekeyError(await errorOf(readAll(store, 'open', 10)), 'STORE_CORRUPT')).toBe(true);
    expect(isSamekeyError(await errorOf(store.commit([begin(headOf(refOf('name:new')))])), 'STORE_CORRUPT')).toBe(true);
    await store.close();
    expect(readFileSync(path)).toEqual(before);
  });

  it('only absence means empty', async () => {
    const store = fileKeyStore(join(temporaryDirectory(), 'not', 'there', 'yet'));
    expect(await readAll(store, 'open', 10)).toEqual([]);
    await store.close();
  });

  it('C57: a flipped bit in a stored body makes that head unreadable, and no other', async () => {
    const { directory, path } = await filled();
    const body = Buffer.from(HEADS[30]?.request as ArrayBuffer).subarray(100, 400);
    const at = readFileSync(path).indexOf(body);
    expect(at).toBeGreaterThan(0);
    overwrite(path, at + 50, Buffer.from([(body[50] as number) ^ 4]));
    const store = fileKeyStore(directory);
    const heads = await readAll(store, 'open', 10);
    expect(heads.filter(({ unreadable }) => unreadable !== undefined).map(({ id, unreadable }) => [id, unreadable])).toEqual([['name:30', expect.stringContaining('checksum')]]);
    expect(heads.filter((_, index) => index !== 30)).toEqual(HEADS.filter((_, index) => index !== 30));
    await store.close();
  });

  it('a log that was torn by a crash gives every commit before the tear', async () => {
    const source = temporaryDirectory();
    const store = fileKeyStore(source);
    for (const head of HEADS.slice(0, 20)) await store.commit([begin(head)]);
    const wal = statSync(join(source, 'samekey.db-wal')).size;
    // Copied while it is open, which a crash amounts to; the copy is opened by nobody else.
    const directory = temporaryDirectory();
    for (const name of ['samekey.db', 'samekey.db-wal']) copyFileSync(join(source, name), join(directory, name));
    await store.close();
    truncateSync(join(directory, 'samekey.db-wal'), wal - 2000);
    const torn = fileKeyStore(directory);
    expect(await readAll(torn, 'open', 100)).toEqual(HEADS.slice(0, 19));
    await torn.close();
  });
});

describe('what cannot be used is refused with the reason and the way out', () => {
  it('a database of a newer version is left alone', async () => {
    const { directory, path } = await filled();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 99');
    database.close();
    await expectRefusal(directory, 'STORE_UNAVAILABLE', /newer samekey \(tables of version 99; this one knows 1\).*update/s);
  });

  it('a database of another program is left alone', async () => {
    const { directory, path } = await filled();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA application_id = 7');
    database.close();
    await expectRefusal(directory, 'STORE_UNAVAILABLE', /another program/);
  });

  it('a directory that is a file', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, 'mine');
    const error = await errorOf(fileKeyStore(path).latest());
    expect(error.message).toMatch(/cannot be the directory of a key store/);
    expect(isSamekeyError(error, 'STORE_UNAVAILABLE')).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  it('a directory that this user may not write to', () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'closed'));
    chmodSync(join(directory, 'closed'), 0o500);
    chmodSync(directory, 0o755);
    const script = `
      const { fileKeyStore } = await import(${JSON.stringify(new URL('../../src/keystore/file.ts', import.meta.url).href)});
      process.seteuid?.(65534); // Root may write everywhere, so the child becomes nobody once its code is loaded.
      await fileKeyStore(${JSON.stringify(join(directory, 'closed'))}).latest().catch(error => console.log(error.code, error.message));`;
    const hooks = new URL('../../tools/resolve-ts.ts', import.meta.url).href;
    const { stdout } = spawnSync(process.execPath, ['--import', hooks, '--input-type=module', '-e', script], { encoding: 'utf8' });
    expect(stdout).toMatch(/^STORE_UNAVAILABLE .*(EACCES|permission denied)/);
    expect(readdirSync(join(directory, 'closed'))).toEqual([]);
  });

  it.each([
    ['NFS', 0x6969],
    ['FUSE or virtiofs', 0x65735546],
    ['9p', 0x01021997],
    ['SMB2', 0xfe534d42],
  ])('a directory on %s', async (name, type) => {
    const directory = temporaryDirectory();
    const error = await errorOf(fileKeyStore(directory, { machine: { fileSystemType: () => type } }).latest());
    expect(error.message).toContain(`is on ${name}`);
    expect(isSamekeyError(error, 'STORE_UNAVAILABLE')).toBe(true);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('a second store on a directory while SQLite is too old to share it, but not the first one', async () => {
    const directory = temporaryDirectory();
    let now = 0;
    // Every look at the clock takes a second, so that waiting for the lock is over soon.
    const clock = { now: () => 0, monotonic: () => (now += 1000), sleep: async () => {} };
    const old: FileKeyStoreOptions = { machine: { sqliteVersion: '3.51.2', clock } };
    const first = fileKeyStore(directory, old);
    await first.commit([begin(headOf(refOf('name:a')))]);
    const error = await errorOf(fileKeyStore(directory, old).get(refOf('name:a')));
    expect(error.message).toMatch(/SQLite 3\.51\.2 cannot share it safely.*update Node to 24\.15/s);
    expect(isSamekeyError(error, 'STORE_UNAVAILABLE')).toBe(true);
    expect(kindsOf(await first.commit([begin(headOf(refOf('name:b')))]))).toEqual(['ok']);
    await first.close();
    const next = fileKeyStore(directory, old);
    expect(await readAll(next, 'open', 10)).toHaveLength(2);
    await next.close();
  });
});

describe('room and privacy', () => {
  it('C42: a full store refuses the begin as full, keeps what it has, and works again when there is room', async () => {
    const directory = temporaryDirectory();
    const store = fileKeyStore(directory, { maxBytes: 400_000 });
    const heads = times(30, at => headOf(refOf(`name:${at}`), { request: bytes(50_000, at) }));
    const results = (await Promise.all(heads.map(head => store.commit([begin(head)])))).flat();
    const kept = heads.filter((_, at) => results[at]?.kind === 'ok');
    const failures = results.filter(result => result.kind === 'failed');
    expect(kept.length).toBeGreaterThan(3);
    expect(failures.length).toBe(heads.length - kept.length);
    expect(failures.every(({ error }) => isSamekeyError(error, 'STORE_FULL'))).toBe(true);
    for (const head of kept) expect(await store.get(head)).toEqual(head);
    expect(kindsOf(await store.commit(kept.map(remove)))).toEqual(kept.map(() => 'ok'));
    expect(kindsOf(await store.commit([begin(heads.at(-1) as (typeof heads)[0])]))).toEqual(['ok']);
    await store.close();
  });

  it('everything it creates is for this user only', async () => {
    const directory = join(temporaryDirectory(), 'private');
    const store = fileKeyStore(directory);
    await store.owner();
    await store.commit([begin(headOf(refOf('name:a')))]);
    const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
    expect(files.length).toBeGreaterThan(3);
    expect(files.map(({ parentPath, name }) => [name, modeOf(join(parentPath, name))])).toEqual(files.map(({ name }) => [name, '600']));
    expect([modeOf(directory), modeOf(join(directory, 'owners'))]).toEqual(['700', '700']);
    await store.close();
  });

  it('a body that was settled away is nowhere in the files any more', async () => {
    const directory = temporaryDirectory();
    const secret = Buffer.from('4242-4242-4242-4242'.repeat(10));
    const head = headOf(refOf('name:a'), { request: Uint8Array.from(secret).buffer });
    const store = fileKeyStore(directory);
    await store.commit([begin(head)]);
    await store.commit([{ ref: head, expect: head.version, next: { ...head, version: head.version + 1, shelf: 'settled', request: null } }]);
    await store.close();
    const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
    expect(files.filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(secret.subarray(0, 40)))).toEqual([]);
  });

  it('nothing is touched before the first call', () => {
    const directory = join(temporaryDirectory(), 'later');
    fileKeyStore(directory);
    expect(existsSync(directory)).toBe(false);
  });
});
