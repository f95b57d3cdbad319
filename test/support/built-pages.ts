import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { msw } from 'msw/vite';
import { build } from 'vite';

/** Pages as they are built for the web, in a folder of their own. */
export interface BuiltPages {
  readonly folder: string;
  remove(): void;
}

/**
 * Builds HTML files of a source folder, with MSW's worker script beside them.
 *
 * @param files - paths within the folder
 */
export const buildPages = async (source: URL, files: readonly string[]): Promise<BuiltPages> => {
  const root = fileURLToPath(source);
  const folder = mkdtempSync(join(tmpdir(), 'samekey-pages-'));
  const input = files.map(file => join(root, file));
  // Modules that wait at their top need a target of today.
  const target = 'esnext';
  await build({ root, plugins: [msw({ mode: 'worker-only' })], logLevel: 'error', build: { outDir: folder, emptyOutDir: true, minify: false, target, rolldownOptions: { input } } });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
};
