import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileKeyStore } from '../../src/keystore/file.js';
import { begin, headOf, refOf } from '../../src/testing/keystore/subject.js';
import { temporaryDirectory } from './support/processes.js';

const write = (id: string) => [begin(headOf(refOf(id)))] as const;

describe.each(['main', 'worker'] as const)('a directory that is taken away under the store (commits on %s)', thread => {
  it.each<[string, (directory: string) => void]>([
    ['deleted', directory => rmSync(directory, { recursive: true })],
    ['moved, and another made in its place', directory => (renameSync(directory, `${directory}.moved`), mkdirSync(directory))],
  ])('%s: the next commit is refused, not acknowledged; the one after it begins anew', async (_, takeAway) => {
    const directory = join(temporaryDirectory(), 'store');
    const store = fileKeyStore(directory, { thread });
    await store.commit(write('name:before'));
    takeAway(directory);
    await expect(store.commit(write('name:lost'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('deleted or replaced') as string });
    expect(await store.commit(write('name:after'))).toEqual([{ kind: 'ok' }]);
    await store.close();
    const reader = fileKeyStore(directory);
    expect(await reader.get(refOf('name:lost'))).toBeUndefined();
    expect(await reader.get(refOf('name:after'))).toMatchObject({ id: 'name:after' });
    await reader.close();
  });
});
