import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));

export interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

export const manifest = (): Manifest => JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/** A project outside of this one that has installed the packed tarball. */
export interface Consumer {
  readonly folder: string;
  /** Paths inside the tarball. */
  readonly files: readonly string[];
  remove(): void;
}

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

const pack = (into: string): Packed => {
  const { stdout, stderr } = spawnSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', into], {
    cwd: ROOT, encoding: 'utf8', shell: process.platform === 'win32',
  });
  const [packed] = JSON.parse(stdout) as Packed[];
  if (!packed) throw new Error(`npm pack gave no package: ${stderr}`);
  return packed;
};

/** Installs the tarball as npm would, with `packages` (from this project's node_modules) beside it and nothing else. */
export const installPacked = (packages: readonly string[]): Consumer => {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-consumer-'));
  const packed = pack(folder);
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'samekey'), { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, packed.filename), '-C', join(modules, 'samekey'), '--strip-components=1']);
  for (const name of packages) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name), 'junction');
  return {
    folder,
    files: packed.files.map(({ path }) => path),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
