import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { Machine } from '../../src/keystore/file.js';
import { adaptiveCommitter } from '../../src/keystore/file/committer.js';
import { databasePath, openDatabase } from '../../src/keystore/file/database.js';
import { openEngine, scanSql } from '../../src/keystore/file/engine.js';
import type { Engine } from '../../src/keystore/file/engine.js';
import { canShare, thisMachine } from '../../src/keystore/file/machine.js';
import { patience } from '../../src/keystore/file/patience.js';
import { encodeWrite } from '../../src/keystore/file/rows.js';
import type { Tuning } from '../../src/keystore/file/schema.js';
import { begin, headOf, kindsOf, readAll, refOf, times } from '../../src/testing/keystore/subject.js';
import { temporaryDirectory } from './support/processes.js';

const TUNING: Tuning = { exclusive: false, fullSync: false, maxBytes: undefined };

/** The steps of SQLite's plan for a statement, in a store with many settled heads and few open ones. */
const planner = async (): Promise<(sql: string, ...values: (string | number)[]) => unknown[]> => {
  const directory = temporaryDirectory();
  const store = fileKeyStore(directory);
  await store.commit(times(2000, at => begin(headOf(refOf(`done:${at}`), { shelf: 'settled', due: at }))), 'relaxed');
  await store.commit(times(20, at => begin(headOf(refOf(`open:${at}`)))));
  await store.close();
  const database = new DatabaseSync(join(directory, 'samekey.db'));
  database.exec('ANALYZE');
  return (sql, ...values) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values).map(step => step['detail']);
};

describe('the work of start-up and resume follows what is open', () => {
  const BOUNDS = ['default', 0, '', '', 9, 100];

  it('a page of open heads is read from its index, in order, without a sort and without the settled table', async () => {
    const plan = await planner();
    expect(plan(scanSql('open', false), ...BOUNDS)).toEqual(['SEARCH open USING INDEX open_due (client=? AND due>? AND due<?)']);
  });

  it('a page of one scope is read from the same index', async () => {
    const plan = await planner();
    const steps = plan(scanSql('open', true), ...BOUNDS, 'user-1');
    expect(steps[0]).toBe('SEARCH open USING INDEX open_due (client=? AND due>? AND due<?)');
    expect(steps.filter(step => String(step).includes('settled'))).toEqual([]);
  });

  it('tidying reads settled heads from their index, in the order of time', async () => {
    const plan = await planner();
    expect(plan(scanSql('settled', false), ...BOUNDS)[0]).toBe('SEARCH settled USING INDEX settled_due (client=? AND due>? AND due<?)');
  });
});

describe('what durability means to SQLite', () => {
  it('a strict commit is made with FULL, which syncs, and a relaxed one with NORMAL, in whatever order they come', () => {
    const path = databasePath(temporaryDirectory());
    const database = openDatabase(path, TUNING);
    const engine = openEngine(database, path, thisMachine.clock);
    const [normal, full] = [1, 2];
    const order = ['strict', 'strict', 'relaxed', 'relaxed', 'strict', 'relaxed', 'strict'] as const;
    const found = order.map((durability, at) => {
      engine.commit([encodeWrite(begin(headOf(refOf(`name:${at}`))))], durability);
      return database.prepare('PRAGMA synchronous').get()?.['synchronous'];
    });
    expect(found).toEqual([full, full, normal, normal, full, normal, full]);
    engine.close();
  });

  // Counted by the kernel, because what SQLite says of itself is not yet a sync.
  it('each strict commit syncs the file, and a relaxed one does not', { timeout: 60_000 }, context => {
    if (!existsSync('/usr/bin/strace')) context.skip('needs /usr/bin/strace, which counts the syncs');
    const script = `
      const { fileKeyStore } = await import(${JSON.stringify(new URL('../../src/keystore/file.ts', import.meta.url).href)});
      const store = fileKeyStore(process.env.DIRECTORY, { thread: 'main' });
      await store.latest();
      for (let at = 0; at < 20; at++) {
        const head = { client: 'c', scope: 's', id: String(at), version: 1, shelf: 'open', due: 1, writtenAt: 1, format: 1, request: null, response: null };
        const [result] = await store.commit([{ ref: head, expect: 'absent', next: head }], process.env.DURABILITY);
        console.log(result.kind);
      }
      process.exit(0);`;
    const syncs = (durability: string): number => {
      const hooks = new URL('../../tools/resolve-ts.ts', import.meta.url).href;
      const options = { encoding: 'utf8', env: { ...process.env, DURABILITY: durability, DIRECTORY: temporaryDirectory() } } as const;
      const traced = ['-f', '-e', 'trace=fsync,fdatasync', process.execPath, '--import', hooks, '--input-type=module', '-e', script];
      const { stdout, stderr } = spawnSync('/usr/bin/strace', traced, options);
      expect(stdout).toBe('ok\n'.repeat(20));
      return stderr.match(/f(data)?sync\(/g)?.length ?? 0;
    };
    const [strict, relaxed] = [syncs('strict'), syncs('relaxed')];
    expect(strict - relaxed).toBeGreaterThanOrEqual(19);
  });
});

describe('where commits run', () => {
  const engineIn = (directory: string, machine: Machine = thisMachine): Engine => {
    const path = databasePath(directory);
    return openEngine(openDatabase(path, TUNING), path, machine.clock);
  };

  /** An engine whose commits take as long as the test says, and which says on which thread they were. */
  const counted = (engine: Engine, syncTook: number): { engine: Engine; commits: () => number } => {
    let commits = 0;
    return {
      commits: () => commits,
      engine: {
        ...engine,
        syncTook,
        commit: (...args) => {
          commits += 1;
          return engine.commit(...args);
        },
      },
    };
  };

  const commitUntil = async (directory: string, syncTook: number, rounds: number, enough: (onMain: number, at: number) => boolean): Promise<number> => {
    const path = databasePath(directory);
    const { engine, commits } = counted(engineIn(directory), syncTook);
    const committer = adaptiveCommitter(engine, patience(path, thisMachine), { path, tuning: TUNING });
    let at = 0;
    while (at < rounds && !enough(commits(), at)) {
      const [result] = await committer.commit([encodeWrite(begin(headOf(refOf(`name:${at++}`))))], 'strict');
      expect(result).toEqual({ kind: 'ok' });
      await new Promise(resolve => setTimeout(resolve, 5));
    }
    await committer.close();
    engine.close();
    return at - commits();
  };

  it('stays on the calling thread while the disk is fast and nobody else writes', async () => {
    expect(await commitUntil(temporaryDirectory(), 0.2, 40, () => false)).toBe(0);
  });

  it('moves to a thread of its own when syncs are slow over and over, and loses no commit on the way', async () => {
    const directory = temporaryDirectory();
    const moved = (onMain: number, at: number): boolean => at - onMain >= 5;
    expect(await commitUntil(directory, 4, 5000, moved)).toBe(5);
    const store = fileKeyStore(directory);
    expect((await readAll(store, 'open', 500)).length).toBeGreaterThan(12);
    await store.close();
  });

  it('goes on while another connection holds the lock, once that lets go', async () => {
    const directory = temporaryDirectory();
    const store = fileKeyStore(directory);
    await store.commit([begin(headOf(refOf('name:a')))]);
    const other = new DatabaseSync(join(directory, 'samekey.db'));
    other.exec('BEGIN IMMEDIATE');
    const commit = store.commit([begin(headOf(refOf('name:b')))]);
    let isDone = false;
    void commit.then(() => (isDone = true));
    // The event loop runs on meanwhile, and reads do not wait.
    for (let at = 0; at < 5; at++) await new Promise(resolve => setTimeout(resolve, 5));
    expect([isDone, (await store.get(refOf('name:a')))?.id]).toEqual([false, 'name:a']);
    other.exec('COMMIT');
    expect(kindsOf(await commit)).toEqual(['ok']);
    other.close();
    await store.close();
  });

  it('gives up with the reason when the lock is held for ever', async () => {
    const directory = temporaryDirectory();
    let now = 0;
    const clock = { now: () => 0, monotonic: () => (now += 500), sleep: async () => {} };
    const store = fileKeyStore(directory, { thread: 'main', machine: { clock } });
    await store.commit([begin(headOf(refOf('name:a')))]);
    const other = new DatabaseSync(join(directory, 'samekey.db'));
    other.exec('BEGIN IMMEDIATE');
    await expect(store.commit([begin(headOf(refOf('name:b')))])).rejects.toThrow(/locked by another process for 5000 ms/);
    other.exec('COMMIT');
    other.close();
    expect(kindsOf(await store.commit([begin(headOf(refOf('name:b')))]))).toEqual(['ok']);
    await store.close();
  });
});

describe('which SQLite may share a database', () => {
  it.each([
    ['3.51.2', false],
    ['3.51.3', true],
    ['3.52.0', true],
    ['4.0.0', true],
    ['3.9.9', false],
    ['0', false],
  ])('%s: %s', (sqliteVersion, expected) => {
    expect(canShare({ ...thisMachine, sqliteVersion })).toBe(expected);
  });
});
