import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
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
  for (const name of packages) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name), 'junction');
  }
  return {
    folder,
    files: packed.files.map(({ path }) => path),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};

/** What `npm pack` needs of a fresh clone: no build is there yet. */
const CLONED = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'src', 'schema', 'README.md', 'CHANGELOG.md', 'LICENSE'];

/** Paths in the tarball that a fresh clone packs after its `npm ci`, scripts and all. */
export const packClone = (): string[] => {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-clone-'));
  try {
    for (const path of CLONED) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
    const { status, stderr } = spawnSync('npm', ['pack'], { cwd: folder, encoding: 'utf8', shell: process.platform === 'win32' });
    const tarball = readdirSync(folder).find(path => path.endsWith('.tgz'));
    if (status !== 0 || !tarball) throw new Error(`npm pack ended with ${status}: ${stderr}`);
    const listed = execFileSync('tar', ['-tzf', tarball], { cwd: folder, encoding: 'utf8' });
    return listed.trim().split(/\r?\n/).map(path => path.replace(/^package\//, ''));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
