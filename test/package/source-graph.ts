import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What each source file imports: paths below `src`, or package names. Types count too, unless told otherwise. */
export type SourceGraph = ReadonlyMap<string, readonly string[]>;

const IMPORT = /^\s*(?:import|export)\s+(type\s+)?(?:[^'"`;]*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/gm;

export const SRC: string = fileURLToPath(new URL('../../src', import.meta.url));

/** All source files, as paths below `src` with forward slashes. */
export const sourceFiles = (): string[] =>
  readdirSync(SRC, { recursive: true, encoding: 'utf8' }).map(path => path.replaceAll(sep, '/')).filter(path => path.endsWith('.ts'));

export const importsOf = (code: string, { types = true } = {}): string[] =>
  [...code.matchAll(IMPORT)].filter(([, type]) => types || type === undefined).map(([, , from, dynamic]) => (from ?? dynamic)!);

const resolve = (file: string, specifier: string): string =>
  specifier.startsWith('.') ? normalize(join(dirname(file), specifier)).replaceAll(sep, '/').replace(/\.js$/, '.ts') : specifier;

export const readGraph = (options?: { types?: boolean }): SourceGraph =>
  new Map(sourceFiles().map(file => [file, importsOf(readFileSync(join(SRC, file), 'utf8'), options).map(specifier => resolve(file, specifier))]));

/** Everything that `entry` reaches over any number of steps, each with the way to it. */
export const reach = (graph: SourceGraph, entry: string): Map<string, readonly string[]> => {
  const found = new Map<string, readonly string[]>([[entry, [entry]]]);
  for (const [file, way] of found) {
    for (const next of graph.get(file) ?? []) if (!found.has(next)) found.set(next, [...way, next]);
  }
  return found;
};

