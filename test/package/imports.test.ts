import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importsOf, reach, readGraph, sourceFiles, SRC } from './source-graph.js';

/** One violation per rule: where, what, and the lint rule that must say so. */
const VIOLATIONS = [
  ['src/probe-1.ts', `import './server/index.js';`, 'no-restricted-imports'],
  ['src/probe-2.ts', `import 'node:fs';`, 'no-restricted-imports'],
  ['src/probe-3.ts', `import './keystore/file.js';`, 'no-restricted-imports'],
  ['src/probe-4.ts', `import './profiles/stripe.js';`, 'no-restricted-imports'],
  ['src/probe-5.ts', `import 'pg';`, 'no-restricted-imports'],
  ['src/probe-6.ts', `export const at = Date.now();`, 'no-restricted-properties'],
  ['src/probe-7.ts', `export const chance = Math.random();`, 'no-restricted-properties'],
  ['src/probe-8.ts', `export const id = crypto.randomUUID();`, 'no-restricted-globals'],
  ['src/probe-9.ts', `setTimeout(() => {}, 1);`, 'no-restricted-globals'],
  ['src/probe-10.ts', `globalThis.setInterval(() => {}, 1);`, 'no-restricted-globals'],
  ['src/probe-11.ts', `export const signal = AbortSignal.timeout(1);`, 'no-restricted-properties'],
  ['src/probe-12.ts', `export default 1;`, 'no-default-export'],
  ['src/probe-13.ts', `export const f = (x: any): void => { x; };`, 'no-explicit-any'],
  ['src/probe-14.ts', `const f = async (): Promise<void> => {}; f();`, 'no-floating-promises'],
  ['src/probe-15.ts', `const f = async (): Promise<void> => {}; [1].forEach(async () => { await f(); });`, 'no-misused-promises'],
  ['src/retry.ts', `import './key.js';`, 'no-restricted-imports'],
  ['src/attempts.ts', `import { newKey } from './key.js'; newKey();`, 'no-restricted-imports'],
  ['src/profiles/probe.ts', `import '../client.js';`, 'no-restricted-imports'],
  ['src/keystore/probe-1.ts', `import './memory.js';`, 'no-restricted-imports'],
  ['src/keystore/probe-2.ts', `import '../operation.js';`, 'no-restricted-imports'],
  ['src/keystore/probe-3.ts', `import 'node:fs';`, 'no-restricted-imports'],
  ['src/keystore/indexeddb.ts', `import './memory.js';`, 'no-restricted-imports'],
  ['src/keystore/file.ts', `import './memory.js';`, 'no-restricted-imports'],
  ['src/server/probe-1.ts', `import 'ky';`, 'no-restricted-imports'],
  ['src/server/probe-2.ts', `import '../client.js';`, 'no-restricted-imports'],
  ['src/server/probe-3.ts', `import './stores/memory.js';`, 'no-restricted-imports'],
  ['src/server/refusals/probe.ts', `import '../http.js';`, 'no-restricted-imports'],
  ['src/server/stores/probe.ts', `import './memory.js';`, 'no-restricted-imports'],
  ['src/server/stores/redis.ts', `import './memory.js';`, 'no-restricted-imports'],
  ['src/server/stores/redis/probe-1.ts', `import 'redis';`, 'no-restricted-imports'],
  ['src/server/stores/redis/probe-2.ts', `import '../memory.js';`, 'no-restricted-imports'],
  ['src/server/stores/postgres.ts', `import 'pg';`, 'no-restricted-imports'],
  ['src/server/stores/sqlite.ts', `import 'node:sqlite';`, 'no-restricted-imports'],
  ['src/server/stores/sql/probe-1.ts', `import 'mysql2';`, 'no-restricted-imports'],
  ['src/server/stores/sql/probe-2.ts', `import '../postgres.js';`, 'no-restricted-imports'],
  ['src/server/adapters/probe.ts', `import 'node:http';`, 'no-restricted-imports'],
  ['src/server/adapters/express-probe.ts', `import 'express';`, 'no-restricted-imports'],
  ['src/server/adapters/fastify-probe.ts', `import 'fastify';`, 'no-restricted-imports'],
  ['src/server/adapters/node-probe.ts', `import '../stores/memory.js';`, 'no-restricted-imports'],
  ['src/server/conditional/probe.ts', `import '../engine.js';`, 'no-restricted-imports'],
  ['src/sql/probe-1.ts', `import 'pg';`, 'no-restricted-imports'],
  ['src/sql/probe-2.ts', `import '../server/store.js';`, 'no-restricted-imports'],
  ['src/sql/probe-3.ts', `import '../database-clients.js';`, 'no-restricted-imports'],
  ['src/msw/probe-1.ts', `import 'ky';`, 'no-restricted-imports'],
  ['src/msw/probe-2.ts', `import '../client.js';`, 'no-restricted-imports'],
  ['src/testing/probe-1.ts', `import 'ky';`, 'no-restricted-imports'],
  ['src/testing/probe-2.ts', `import 'vitest';`, 'no-restricted-imports'],
  ['src/testing/conformance/probe-1.ts', `import '../../server/http.js';`, 'no-restricted-imports'],
  ['src/testing/conformance/facts/probe-1.ts', `import '../stage.js'; import '../scenarios.js';`, 'no-restricted-imports'],
] as const;

/** What the same lists must let through. */
const ALLOWED = [
  ['src/fine.ts', `import 'ky'; import './keystore/keystore.js'; import './keystore/indexeddb.js'; import './profiles/ietf.js';`],
  ['src/clock.ts', `export const at = Date.now(); setTimeout(() => {}, 1);`],
  ['src/keystore/indexeddb-fine.ts', `import './indexeddb-rows.js'; import '../indexeddb.js'; import 'idb-keyval';`],
  ['src/keystore/file/fine.ts', `import 'node:sqlite'; import '../keystore.js'; import '../../errors.js';`],
  ['src/server/stores/redis/fine.ts', `import 'node:buffer'; import './value.js'; import '../../record.js'; import '../../../within.js';`],
  ['src/server/fine.ts', `import './store.js'; import '../checks.js'; import '../database-clients.js';`],
  ['src/server/migrate.ts', `import 'node:fs/promises'; import '../sql/database.js'; import '../database-clients.js';`],
  ['src/server/stores/mysql.ts', `import './sql/store.js'; import '../store.js'; import '../../sql/statement.js'; import '../../checks.js';`],
  ['src/server/stores/sql/fine.ts', `import './dialect.js'; import '../../record.js'; import '../../../sql/statement.js';`],
  ['src/server/adapters/node.ts', `import 'node:http'; import '../http.js';`],
  ['src/server/adapters/express-fine.ts', `import 'node:http'; import './node.js'; import '../errors.js';`],
  ['src/server/conditional/fine.ts', `import './etag.js'; import '../../sql/statement.js';`],
  ['src/sql/fine.ts', `import './database.js'; import '../clock.js'; import '../checks.js';`],
  ['src/testing/conformance/facts/fine.ts', `import './common.js'; import '../stage.js'; import '../../check.js'; import '../../../clock.js';`],
  ['src/server/refusals/fine.ts', `import './style.js'; import '../record.js';`],
  ['src/msw/fine.ts', `import 'msw'; import '../server/index.js';`],
] as const;

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'samekey-lint-'));

interface Diagnostic {
  readonly code: string;
  readonly filename: string;
}

const lint = (): Diagnostic[] => {
  // Rules that know types look for their engine, and for Node's types, beside the code.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  for (const file of ['.oxlintrc.json', 'tsconfig.json']) copyFileSync(join(root, file), join(folder, file));
  for (const [path, code] of [...VIOLATIONS, ...ALLOWED]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `${code}\n`);
  }
  const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/oxlint/bin/oxlint'), '-f', 'json', 'src'], { cwd: folder, encoding: 'utf8' });
  return (JSON.parse(stdout) as { diagnostics: Diagnostic[] }).diagnostics;
};

describe('the lint configuration', () => {
  let diagnostics: Diagnostic[];
  beforeAll(() => {
    diagnostics = lint();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const rulesFor = (path: string): string[] => diagnostics.filter(({ filename }) => filename === path).map(({ code }) => code.replace(/^.*\(|\)$/g, ''));

  test.each(VIOLATIONS)('in %s it refuses %s', (path, _code, rule) => {
    expect(rulesFor(path)).toContain(rule);
  });

  test.each(ALLOWED)('in %s it allows %s', path => {
    expect(rulesFor(path).filter(rule => rule.startsWith('no-restricted'))).toEqual([]);
  });
});

describe('the import graph', () => {
  const graph = readGraph();
  const runtime = readGraph({ types: false });

  test('is read whole: every import of a source file leads to a source file or a package', () => {
    const files = new Set(sourceFiles());
    const lost = [...graph].flatMap(([file, targets]) => targets.filter(target => target.endsWith('.ts') && !files.has(target)).map(target => [file, target]));
    expect(lost).toEqual([]);
    expect(importsOf(`import a from 'a';\nexport * from './b.js';\nconst c = await import('c');\nimport type { D } from 'd';\nimport {\n  e,\n} from 'e';`))
      .toEqual(['a', './b.js', 'c', 'd', 'e']);
  });

  test.each(['retry.ts', 'attempts.ts'])('%s reaches key.ts over no number of steps', entry => {
    expect(graph.has(entry), `src/${entry} is gone; name its successor here`).toBe(true);
    expect(reach(runtime, entry).get('key.ts')).toBeUndefined();
    expect(reach(runtime, entry).get('uuid')).toBeUndefined();
  });

  test('the client reaches no optional part and nothing of Node', () => {
    const foreign = [...reach(runtime, 'index.ts')].filter(([target]) => /^(?:node:|msw|(?:server|msw|testing|consumer|outbox)\/)/.test(target));
    expect(foreign).toEqual([]);
  });

  test.each(['server', 'sql', 'msw', 'testing'])('nothing under %s reaches ky, types included', layer => {
    const entries = sourceFiles().filter(file => file.startsWith(`${layer}/`));
    expect(entries).not.toEqual([]);
    expect(entries.map(entry => reach(graph, entry).get('ky')).filter(Boolean)).toEqual([]);
  });

  test('all that is imported from outside is a dependency, an optional peer or Node', () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
    const declared = new Set([...Object.keys(dependencies!), ...Object.keys(peerDependencies!)]);
    const packages = [...graph.values()].flat().filter(target => !target.endsWith('.ts') && !target.startsWith('node:'));
    expect(packages.map(name => name.split('/').slice(0, name.startsWith('@') ? 2 : 1).join('/')).filter(name => !declared.has(name))).toEqual([]);
  });

  test('`new Date()` without an argument, which lint cannot tell from one with, stands in clock.ts only', () => {
    const culprits = sourceFiles().filter(file => file !== 'clock.ts' && /new Date\(\)/.test(readFileSync(join(SRC, file), 'utf8')));
    expect(culprits).toEqual([]);
  });
});
