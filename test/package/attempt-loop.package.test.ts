import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { reach, readGraph } from './source-graph.js';
import { ROOT } from './tarball.js';

/** Whatever could make a fresh key, or a part of one, while a request is being repeated. */
const MAKES_A_KEY = /\bnewKey\b|\bderiveKey\b|\buuid\b|\bv[1-7]\(|randomUUID|getRandomValues|Math\.random|key\.js/;

/** Time makes keys, too, where it does not come from the clock that the loop is given. */
const ASKS_THE_MACHINE = /Date\.now|new Date\(\)|performance\.now/;

/** The door for time; it may ask the machine, and make a key no more than the others. */
const CLOCK = 'clock.js';

const forbiddenIn = (name: string): readonly RegExp[] => (name === CLOCK ? [MAKES_A_KEY] : [MAKES_A_KEY, ASKS_THE_MACHINE]);

/** Comments may speak of keys; the code may not. */
const builtCode = (name: string): string => transformSync(readFileSync(join(ROOT, 'dist', name), 'utf8'), { legalComments: 'none' }).code;

/** The loop and everything that it can call, as far as imports tell. */
const PARTS = [...reach(readGraph({ types: false }), 'attempts.ts').keys()].map(path => path.replace(/\.ts$/, '.js'));

describe('check 4: the built attempt loop', () => {
  test('is what is searched here', () => {
    expect(PARTS).toEqual(expect.arrayContaining(['attempts.js', 'retry.js', 'send.js']));
  });

  test.each(PARTS)('%s contains nothing that makes a key', name => {
    expect(existsSync(join(ROOT, 'dist', name)), `dist/${name} is missing: run \`npm run build\``).toBe(true);
    const code = builtCode(name);
    expect(forbiddenIn(name).map(forbidden => forbidden.exec(code)?.[0]).filter(Boolean)).toEqual([]);
  });

  test('the clock is the one part that asks the machine for the time', () => {
    expect(PARTS.filter(name => ASKS_THE_MACHINE.test(builtCode(name)))).toEqual([CLOCK]);
  });

  test.each([
    `const key = newKey();`, `headers.set('Idempotency-Key', crypto.randomUUID());`, `import { v4 } from 'uuid';`, `const key = v7();`,
    `const key = Math.random().toString(36);`, `const key = String(Date.now());`, `const key = String(+new Date());`, `import { x } from './key.js';`,
  ])('the search would find %s', line => {
    expect(forbiddenIn('attempts.js').some(forbidden => forbidden.test(line))).toBe(true);
  });
});
