import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

/** Calls what it is given when a test, or what else uses a thing, is over. */
export type AtEnd = (end: () => void) => void;

/** A folder that goes away with its test. */
export const temporaryDirectory = (atEnd: AtEnd = onTestFinished): string => {
  const directory = mkdtempSync(join(tmpdir(), 'samekey-test-'));
  atEnd(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
};

export interface Spoken {
  readonly child: ChildProcess;
  /** All complete lines so far. */
  readonly lines: string[];
  /** Resolves with the first line that begins so, now or later; rejects when the process ends without it. */
  readonly line: (beginning: string) => Promise<string>;
  readonly ended: Promise<void>;
}

const hooks = new URL('../../../tools/resolve-ts.ts', import.meta.url).href;
/** Stripping types costs a third of a second per process; tests that start a hundred of them pay once. */
const compileCache = new URL('../../../node_modules/.cache/samekey-tests/', import.meta.url).pathname;
const fileProcess = new URL('./file-process.ts', import.meta.url).pathname;

/** Starts a script on the sources; it is killed with its test at the latest. */
export const startScript = (script: string, args: readonly string[], { atEnd = onTestFinished, ...options }: SpawnOptions & { readonly atEnd?: AtEnd } = {}): Spoken => {
  const child = spawn(process.execPath, ['--import', hooks, script, ...args], { env: { ...process.env, NODE_COMPILE_CACHE: compileCache }, ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  atEnd(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  let errors = '';
  child.stderr?.on('data', chunk => (errors += String(chunk)));
  const waiting: { beginning: string; resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  const reader = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  reader.on('line', line => {
    lines.push(line);
    for (const { beginning, resolve } of waiting) if (line.startsWith(beginning)) resolve(line);
  });
  reader.on('close', () => waiting.forEach(({ beginning, reject }) => reject(new Error(`The process ended without saying '${beginning}': ${errors}`))));
  return {
    child,
    lines,
    line: beginning =>
      new Promise((resolve, reject) => {
        const said = lines.find(line => line.startsWith(beginning));
        if (said === undefined) waiting.push({ beginning, resolve, reject });
        else resolve(said);
      }),
    ended: once(reader, 'close').then(() => undefined),
  };
};

/** Starts a process that uses a file store. */
export const start = (args: readonly string[], options: SpawnOptions = {}): Spoken => startScript(fileProcess, args, options);
