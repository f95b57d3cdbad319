import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

export interface Bundle {
  /** Bytes after minification. */
  readonly min: number;
  /** Bytes after minification and gzip -9. */
  readonly gzip: number;
  readonly brotli: number;
  /** Source files and packages that left bytes in the bundle, with how many. */
  readonly parts: ReadonlyMap<string, number>;
}

/** The three libraries that the client stands on. */
export const LIBRARIES: readonly string[] = ['ky', 'uuid', 'idb-keyval'];

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What a browser app that writes `code` would ship. `code` imports from `./src/…`. */
export const bundle = async (code: string, external: readonly string[] = []): Promise<Bundle> => {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: ROOT, loader: 'ts', sourcefile: 'app.ts' },
    absWorkingDir: ROOT,
    bundle: true, minify: true, write: false, metafile: true, outfile: 'app.js',
    format: 'esm', platform: 'browser', target: 'es2023',
    external: [...external],
  });
  const bytes = outputFiles[0]!.contents;
  const { inputs } = Object.values(metafile.outputs)[0]!;
  return {
    min: bytes.length,
    gzip: gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }).length,
    brotli: brotliCompressSync(bytes).length,
    parts: new Map(Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path, { bytesInOutput }]) => [path, bytesInOutput])),
  };
};

/** An app that uses the client as most do: default profile, default store. It uses what it imports, so that nothing shakes out by mistake. */
export const WHOLE_CLIENT = `import * as samekey from './src/index.js'; console.log(samekey);`;
