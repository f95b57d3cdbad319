import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const path = (relative: string): string => fileURLToPath(new URL(`../../${relative}`, import.meta.url));

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs the demo as its script does, on the build. */
const demo = (...options: string[]): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = execFile(process.execPath, ['--import', path('tools/resolve-ts.ts'), path('examples/node/demo.ts'), '--seed', '7', ...options], (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(error);
      else resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });

const numbers = (output: string): number[] => /(\d+) orders, (\d+) charges, (\d+) keys, after (\d+) kills/.exec(output)?.slice(1).map(Number) ?? [];

test('a shop that is killed again and again places each order once', async () => {
  const { code, output } = await demo();
  const [orders, charges, keys, kills] = numbers(output);
  expect([orders, charges, keys], output).toEqual([12, 12, 12]);
  expect(kills).toBeGreaterThanOrEqual(3);
  expect(output).toContain('the shop knows every one of them');
  expect(code).toBe(0);
});

test('the same shop without samekey charges twice, says so, and ends with 0', async () => {
  const { code, output } = await demo('--without-samekey');
  const [orders = 0, charges = 0] = numbers(output);
  expect(charges, output).toBeGreaterThan(orders);
  expect(output).toMatch(/\d+ orders were charged more than once/);
  expect(code).toBe(0);
});

test('a server that ignores keys breaks the verdict, and the demo ends with 1', async () => {
  const { code, output } = await demo('--ignore-keys');
  const [orders = 0, charges = 0, keys = 0] = numbers(output);
  expect(charges, output).toBeGreaterThan(orders);
  expect(keys).toBe(orders);
  expect(code).toBe(1);
});
