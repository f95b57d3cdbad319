import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { installPacked, manifest, packClone, ROOT } from './tarball.js';
import type { Consumer } from './tarball.js';

const { dependencies, peerDependencies, exports } = manifest();

const CODE = Object.entries(exports).flatMap(([subpath, target]) => (typeof target === 'string' ? [] : [{ subpath, ...target }]));
const specifier = (subpath: string): string => `samekey${subpath.slice(1)}`;

interface SourceMap {
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
}

/** What the README's snippets take for granted. */
const README_WORLD = `
declare global {
  const session: { readonly userId: string };
  const order: { readonly id: string };
  interface Charge { readonly id: string }
  function showReceipt(charge: string): void;
  function showPending(): void;
  function secret(name: string): Promise<string>;
  function signedInUser(request: Request): Promise<string | undefined>;
  function chargeCard(order: unknown): Promise<Charge>;
  const pool: import('samekey/sql').PgPool;
  const redis: import('redis').RedisClientType;
  function orderOf(body: unknown): { status: string; note: string | null };
  function changesOf(body: unknown): { status?: string; note?: string | null };
}
export {};
`;

const readme = (): string => readFileSync(join(ROOT, 'README.md'), 'utf8');

const DOCS = ['docs/server.md', 'docs/mock.md', 'docs/dialects.md'];

/** What an app has beside samekey that tests with the mock, as the README shows. */
const TEST_RUNNER = 'vitest';

/** What the apps of the README serve with. */
const FRAMEWORKS = ['express', '@types/express', 'fastify', 'hono', 'pg', '@types/pg', 'redis', '@redis/client'];

const readmeSnippets = (): string[] =>
  [readme(), ...DOCS.map(path => readFileSync(join(ROOT, path), 'utf8'))].flatMap(text => [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code!));

/** Entries that may need a package which only some users have. */
const NEEDS_PEER: Readonly<Record<string, string>> = { './msw': 'msw' };

const run = (folder: string, args: readonly string[]): { readonly status: number | null; readonly output: string } => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  return { status, output: stdout + stderr };
};

/** What a consumer gets when it imports each entry: the names, or why it cannot. */
const importAll = (folder: string): Record<string, string> => {
  const names = JSON.stringify(CODE.map(({ subpath }) => specifier(subpath)));
  const script = `
    const entries = await Promise.all(${names}.map(async name => [name, await import(name).then(Object.keys, error => 'failed: ' + error)]));
    console.log(JSON.stringify(Object.fromEntries(entries)));
  `;
  const { status, output } = run(folder, ['--input-type=module', '--eval', script]);
  if (status !== 0) throw new Error(`The consumer ended with ${status}: ${output}`);
  return JSON.parse(output) as Record<string, string>;
};

describe('the packed tarball', () => {
  let consumer: Consumer;
  let imported: Record<string, string>;
  let importedWithoutPeers: Record<string, string>;
  beforeAll(() => {
    const bare = installPacked(Object.keys(dependencies));
    importedWithoutPeers = importAll(bare.folder);
    bare.remove();
    consumer = installPacked([...Object.keys(dependencies), ...Object.keys(peerDependencies), TEST_RUNNER, ...FRAMEWORKS]);
    imported = importAll(consumer.folder);
  });
  afterAll(() => consumer.remove());

  test('depends on ky, uuid and idb-keyval, and on nothing else', () => {
    expect(Object.keys(dependencies).toSorted()).toEqual(['idb-keyval', 'ky', 'uuid']);
  });

  test('contains the build and its papers only', () => {
    const foreign = consumer.files.filter(path => !/^(?:dist\/.+\.(?:js|d\.ts|js\.map)|schema\/\w+\.sql|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(path));
    expect(foreign).toEqual([]);
    expect(consumer.files).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'CHANGELOG.md']));
  });

  test('gives the schema of every SQL store, and makes its tables', () => {
    const script = `
      import { DatabaseSync } from 'node:sqlite';
      import { migrate, schemaOf } from 'samekey/server/migrate';
      import { fromNodeSqlite } from 'samekey/sql';
      const sqlite = new DatabaseSync(':memory:');
      await migrate(fromNodeSqlite(sqlite), 'sqlite');
      const tables = sqlite.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all().map(({ name }) => name);
      const schemas = await Promise.all(['postgres', 'mysql', 'sqlite'].map(dialect => schemaOf(dialect, { table: 'shop_keys' })));
      console.log(JSON.stringify({ tables, named: schemas.map(text => /CREATE TABLE IF NOT EXISTS ["\`]shop_keys["\`] /.test(text)) }));
    `;
    const { status, output } = run(consumer.folder, ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script]);
    expect({ status, output: output.trim() }).toEqual({
      status: 0, output: JSON.stringify({ tables: ['idempotency_keys', 'idempotency_keys_effects'], named: [true, true, true] }),
    });
  });

  test('brings the sources that its maps speak of, inside the maps', () => {
    const read = (path: string): string => readFileSync(join(consumer.folder, 'node_modules/samekey', path), 'utf8');
    const maps = consumer.files.filter(path => path.endsWith('.map')).map(path => JSON.parse(read(path)) as SourceMap);
    expect(maps).not.toEqual([]);
    expect(maps.filter(({ sources, sourcesContent = [] }) => sources.some((_source, at) => !sourcesContent[at]))).toEqual([]);
    expect(consumer.files.filter(path => path.endsWith('.d.ts') && read(path).includes('sourceMappingURL'))).toEqual([]);
  });

  test('is whole when a fresh clone packs it, where nobody has built before', () => {
    expect(packClone().toSorted()).toEqual(consumer.files.toSorted());
  });

  test.each(CODE)('contains what $subpath names', ({ types, default: code }) => {
    expect(consumer.files).toEqual(expect.arrayContaining([types.slice(2), code.slice(2)]));
  });

  test.each(CODE)('$subpath has a row in the table of parts of the README', ({ subpath }) => {
    const rows = readme().split('\n').filter(line => line.startsWith('| `samekey'));
    expect(rows.filter(row => row.split('|')[1]!.includes(`\`${specifier(subpath)}\``))).toHaveLength(1);
  });

  test('names the types of every entry first, where TypeScript looks', () => {
    expect(CODE.filter(({ subpath }) => Object.keys(exports[subpath]!)[0] !== 'types')).toEqual([]);
  });

  test.each(CODE)('$subpath can be imported, and has something to give', ({ subpath }) => {
    expect(imported[specifier(subpath)]).toEqual(expect.arrayContaining([expect.any(String)]));
  });

  test.each(CODE.filter(({ subpath }) => !(subpath in NEEDS_PEER)))('$subpath can be imported where no optional peer is installed', ({ subpath }) => {
    expect(importedWithoutPeers[specifier(subpath)]).toEqual(imported[specifier(subpath)]);
  });

  test.each(Object.entries(NEEDS_PEER))('%s says what it misses where its peer is not installed', (subpath, peer) => {
    expect(importedWithoutPeers[specifier(subpath)]).toContain(`Cannot find package '${peer}'`);
  });

  test.each([['nodenext', 'nodenext'], ['esnext', 'bundler']])('its types and the snippets of the README compile for module %s, resolution %s, with the library check on', (module, moduleResolution) => {
    const folder = join(consumer.folder, moduleResolution);
    mkdirSync(folder);
    symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'types'), 'junction');
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'use.ts'), CODE.map(({ subpath }, index) => `export * as entry${index} from '${specifier(subpath)}';\n`).join(''));
    const snippets = readmeSnippets();
    expect(snippets).not.toEqual([]);
    writeFileSync(join(folder, 'readme-world.ts'), README_WORLD);
    snippets.forEach((code, index) => writeFileSync(join(folder, `readme-${index}.ts`), code));
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({
      compilerOptions: {
        module, moduleResolution, target: 'es2023', lib: ['es2023', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'],
        strict: true, noEmit: true, skipLibCheck: false, typeRoots: ['./types'], types: ['node'],
      },
      include: ['*.ts'],
    }));
    expect(run(folder, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder])).toEqual({ status: 0, output: '' });
  });

  test('the test with the mock, as the README shows it, passes', () => {
    const folder = join(consumer.folder, 'mocked');
    mkdirSync(folder);
    const tests = readmeSnippets().filter(code => code.includes(`from '${TEST_RUNNER}'`));
    tests.forEach((code, index) => writeFileSync(join(folder, `readme-${index}.test.ts`), code));
    const { status, output } = run(folder, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder, '--reporter', 'tap']);
    expect({ status, passed: output.match(/^\s+ok /gm)?.length, output }).toMatchObject({ status: 0, passed: 1 });
  });
});
