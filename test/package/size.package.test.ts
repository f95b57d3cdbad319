import { expect, test } from 'vitest';
import { bundle, LIBRARIES, WHOLE_CLIENT } from '../../bench/bundle.js';

/**
 * Bytes, min + gzip: what an app pays for samekey itself, on top of three libraries that it may have already. It is what
 * the client takes today, rounded up, so that growth is noticed; the goal of 7.5 kB is missed, and `npm run bench:size`
 * says by how much and where the bytes are.
 */
const BUDGET = 28_700;

test('the whole client with default profile and IndexedDB store does not grow unnoticed', async () => {
  expect((await bundle(WHOLE_CLIENT, LIBRARIES)).gzip).toBeLessThanOrEqual(BUDGET);
});

test('profiles that an app does not name are not in its bundle', async () => {
  const profilesIn = async (code: string): Promise<string[]> => [...(await bundle(code, LIBRARIES)).parts.keys()].filter(path => path.startsWith('src/profiles/'));
  expect(await profilesIn(WHOLE_CLIENT)).not.toContain('src/profiles/stripe.ts');
  expect(await profilesIn(`${WHOLE_CLIENT} import { stripe } from './src/profiles/index.js'; console.log(stripe);`)).toContain('src/profiles/stripe.ts');
});

test('nothing of Node and none of the optional parts is in a browser bundle', async () => {
  const { parts } = await bundle(WHOLE_CLIENT, LIBRARIES);
  expect([...parts.keys()].filter(path => /^src\/(?:server|msw|testing|keystore\/(?:file|memory))/.test(path))).toEqual([]);
});
