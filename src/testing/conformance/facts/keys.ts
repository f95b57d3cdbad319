import { ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { ensureRuns, ensureSame, ensureStatus } from './common.js';

/** What cannot be one key. The letter is that of the fact. */
const INVALID: readonly (readonly [id: string, what: string, key: string])[] = [
  ['13a', 'two values in one line', 'a, b'],
  ['13c', 'two quoted values', '"a", "b"'],
  ['14a', 'an empty header', ''],
  ['14b', 'an empty string', '""'],
  ['14c', '256 characters', 'x'.repeat(256)],
  ['14d', '256 characters in quotes', `"${'x'.repeat(256)}"`],
  ['14f', 'a character that is not ASCII', 'schl\u00fcssel'],
  ['14g', 'a quote without an end', '"abc'],
  ['14h', 'an escape that does not exist', '"a\\bc"'],
  ['14i', 'parameters', '"abc";v=1'],
  ['14j', 'parameters after a bare value', 'abc;v=1'],
  ['14k', 'a space inside a bare value', 'a b'],
];

const isRefused = ([id, what, key]: (typeof INVALID)[number]): Fact => ({
  id,
  name: `a key that cannot be one key is refused, never ignored: ${what}`,
  async run({ scenario, words }) {
    const charge = scenario();
    ensureStatus(await charge.send({ key }), { words, is: ['invalid'] }, 'the key');
    await ensureRuns(charge, 0);
  },
});

/** Keys that one careless step would make equal, around one that is fresh. */
const apartFrom = (key: string): string[] => [
  key, `${key}:a`, `${key}/a`, `${key}%20a`, `${key}%`, `${key}*`, `${key}?`, `${key}\\n`, `${key}'a`, `"${key}'; DROP TABLE keys;--"`, `1:${key}`, `charges:${key}`, `/charges:${key}`,
];

export const keys: readonly Fact[] = [
  {
    id: '12a',
    name: 'a quoted and a bare key are the same key',
    async run({ scenario }) {
      const charge = scenario();
      const first = await charge.send({ key: `"${charge.key}"` });
      ensureSame(await charge.send({ key: charge.key }), first);
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '12b',
    name: 'escapes in a quoted key are read',
    async run({ scenario }) {
      const charge = scenario();
      const first = await charge.send({ key: `"${charge.key}\\"x\\\\y"` });
      ensureSame(await charge.send({ key: `"${charge.key}\\"x\\\\y"` }), first);
      await charge.send({ key: `"${charge.key}\\"x\\\\z"` });
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '12c',
    name: 'a strict server takes quoted keys only',
    config: { strict: true },
    async run({ scenario, words }) {
      const charge = scenario();
      ensureStatus(await charge.send(), { words, is: ['invalid'] }, 'a bare key');
      ensureEqual((await charge.send({ key: `"${charge.key}"` })).status, 201, 'a quoted key runs');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '13b',
    name: 'a key in two header lines is refused',
    needs: ['header lines'],
    async run({ scenario, words }) {
      const charge = scenario();
      const status = await charge.sendLines([[words.header, 'a'], [words.header, 'b']]);
      ensureStatus({ status }, { words, is: ['invalid'] }, 'a key in two lines');
      await ensureRuns(charge, 0);
    },
  },
  ...INVALID.map(isRefused),
  {
    id: '14e',
    name: 'a key that cannot be one key is refused, never ignored: a control character',
    // Not every platform’s fetch sends such a header.
    needs: ['header lines'],
    async run({ scenario, words }) {
      const charge = scenario();
      ensureStatus({ status: await charge.sendLines([[words.header, 'a\u0001b']]) }, { words, is: ['invalid'] }, 'the key');
      await ensureRuns(charge, 0);
    },
  },
  {
    id: '15a',
    name: 'a key of 16 characters is accepted, and so is one of 255',
    async run({ scenario }) {
      const charge = scenario();
      for (const key of [charge.key.replaceAll('-', '').slice(-16), charge.key.padEnd(255, 'x')]) {
        ensureEqual((await charge.send({ key })).status, 201, `a key of ${key.length} characters runs`);
      }
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '16a',
    name: 'keys of any characters stay apart from each other',
    async run({ scenario }) {
      const charge = scenario();
      const apart = apartFrom(charge.key);
      for (const key of apart) ensureEqual((await charge.send({ key })).status, 201, `${key} is a key of its own`);
      await ensureRuns(charge, apart.length);
    },
  },
  {
    id: '16b',
    name: 'a key and a path never run into those of another endpoint',
    needs: ['endpoints'],
    async run({ scenario }) {
      const charge = scenario();
      const { key: c } = charge;
      const pairs = [['/charges', `b:${c}`], ['/charges/b', c], ['/charges', `/b:${c}`], ['/refunds', c], ['/charges:b', c]] as const;
      for (const [path, key] of pairs) ensureEqual((await charge.send({ path, key })).status, 201, `${key} at ${path} is a key of its own`);
      await ensureRuns(charge, pairs.length);
    },
  },
  {
    id: '17a',
    name: 'keys differ by case',
    async run({ scenario }) {
      const charge = scenario();
      for (const key of [`${charge.key}-a`, `${charge.key}-A`]) await charge.send({ key });
      await ensureRuns(charge, 2);
    },
  },
];
