import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { fileKeyStore } from '../../src/keystore/file.js';
import type { FileKeyStoreOptions } from '../../src/keystore/file.js';
import { describeKeyStore } from '../../src/testing/index.js';
import type { KeyStoreSubject } from '../../src/testing/index.js';

const subject = (options: FileKeyStoreOptions) => (): KeyStoreSubject => {
  const directory = mkdtempSync(join(tmpdir(), 'samekey-file-'));
  return {
    open: () => fileKeyStore(directory, options),
    spoil: async ({ client, scope, id }) => {
      const database = new DatabaseSync(join(directory, 'samekey.db'), { timeout: 1000 });
      database.prepare("UPDATE open SET head = substr(head, 1, length(head) - 5) || 'x' WHERE client = ? AND scope = ? AND id = ?").run(client, scope, id);
      database.close();
    },
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  };
};

for (const options of [{ thread: 'main' }, { thread: 'worker' }, { thread: 'auto' }] as const) {
  describeKeyStore({ describe, it }, `fileKeyStore with commits on thread ${options.thread}`, subject(options));
}

describe('fileKeyStore', () => {
  it('refuses an empty directory, which would be wherever the process was started', () => {
    expect(() => fileKeyStore('')).toThrow(new TypeError("The directory of fileKeyStore is ''. Name a directory of its own, like './keys'; if the name comes from the environment, it is not set."));
  });
});
