import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startEmbeddedPostgres } from './embedded-postgres.js';
import { findPostgres } from './find-postgres.js';

const RESOLVE_TS = new URL('../../../tools/resolve-ts.ts', import.meta.url).href;
const EMBEDDED = new URL('embedded-postgres.ts', import.meta.url).href;

/** Nobody listens on port 1. */
const NOWHERE = 'postgres://postgres:postgres@127.0.0.1:1/postgres';

const versionAt = async (url: string): Promise<number> => {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ major: number }>(`SELECT current_setting('server_version_num')::int / 10000 AS major`);
  await client.end();
  return rows[0]?.major as number;
};

describe('the PostgreSQL of the tests', () => {
  test('is started for them where none answers, and leaves nothing behind', async () => {
    const { url, stop } = await findPostgres(undefined, NOWHERE);
    expect(await versionAt(url)).toBe(18);
    await stop();
    await expect(versionAt(url)).rejects.toThrow('ECONNREFUSED');
  });

  test('is the one that answers where it is looked for first', async () => {
    const { place: { port }, directory, stop } = await startEmbeddedPostgres();
    onTestFinished(stop);
    const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
    const found = await findPostgres(undefined, url);
    expect(found.url).toBe(url);
    await found.stop();
    expect([await versionAt(url), existsSync(directory)]).toEqual([18, true]);
  });

  test('is no other than the one that SAMEKEY_POSTGRES names', () => expect(findPostgres(NOWHERE)).rejects.toThrow(`No PostgreSQL answers at ${NOWHERE}`));

  test('says which folder is closed to the user that it must run as, instead of waiting for ever', async context => {
    context.skip(process.getuid?.() !== 0, 'only root has to run it as another user');
    const closed = mkdtempSync(join(tmpdir(), 'samekey-closed-'));
    onTestFinished(() => rmSync(closed, { recursive: true }));
    vi.stubEnv('TMPDIR', closed);
    onTestFinished(() => void vi.unstubAllEnvs());
    await expect(startEmbeddedPostgres()).rejects.toThrow(`may not enter ${closed}`);
  });

  test('says what the server said when it does not start, and leaves nothing behind', async () => {
    const failure = await startEmbeddedPostgres(['-c', 'no_such_setting=1']).catch((error: unknown) => error as Error);
    expect(failure).toMatchObject({ message: expect.stringContaining('unrecognized configuration parameter "no_such_setting"') });
    expect(existsSync(/in (\S+) on port/.exec((failure as Error).message)?.[1] as string)).toBe(false);
  });

  test.each([
    { ending: 'stops', end: 'await server.stop();' },
    { ending: 'abandons', end: 'process.exit();' },
  ])('leaves the exit code of a process that $ending it alone, and does not outlive it', async ({ end }) => {
    const script = `import { startEmbeddedPostgres } from '${EMBEDDED}'; const server = await startEmbeddedPostgres(); console.log(server.directory); process.exitCode = 3; ${end}`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', RESOLVE_TS, '--input-type=module', '--eval', script], { encoding: 'utf8' });
    const directory = stdout.trim();
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    expect({ status, stderr }).toEqual({ status: 3, stderr: '' });
    await expect.poll(() => existsSync(join(directory, 'postmaster.pid'))).toBe(false);
  });
});
