import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Sent, Stage } from '../stage.js';
import { codeOf, ensureMembers, ensureRuns, ensureSame, ensureStatus, startHeld } from './common.js';

type Pair = readonly [first: Sent, other: Sent];

const form = (...entries: readonly (readonly [name: string, value: string | Blob, fileName?: string])[]): FormData => {
  const data = new FormData();
  for (const [name, value, fileName] of entries) {
    if (typeof value === 'string') data.append(name, value);
    else data.append(name, value, fileName);
  }
  return data;
};

const file = (content: BlobPart, name: string): FormData => form(['file', new Blob([content]), name]);

const photo = (): FormData => form(['title', 'cat'], ['tag', 'a'], ['tag', 'b'], ['file', new Blob([new Uint8Array([1, 2, 255])], { type: 'image/png' }), 'cat.png']);

/**
 * Requests that ask for something else than the first. A server may count keys per endpoint, and what an endpoint is, is
 * its own affair: it refuses the second, or runs it by itself. What it may not do is to answer it with the first.
 */
const OTHERS: readonly (readonly [id: string, what: string, pair: Pair])[] = [
  ['19a', 'another path', [{ path: '/charges' }, { path: '/charges/refunds' }]],
  ['20a', 'C83: another query value', [{ path: '/charges?to=a' }, { path: '/charges?to=b' }]],
  ['20b', 'C83: queries that look alike when their parts are joined', [{ path: '/charges?a=&a=b&c=' }, { path: '/charges?a=&a=&b%26c=' }]],
  ['20c', 'C83: a colon that moves from the path to the query', [{ path: '/charges/a:b?c' }, { path: '/charges/a?b:c' }]],
  ['20d', 'C83: another order of equal query names', [{ path: '/charges?a=1&a=2' }, { path: '/charges?a=2&a=1' }]],
  ['21a', 'another method', [{ method: 'POST' }, { method: 'PATCH' }]],
];

/** Bodies that ask for something else, at the same place. The second is refused. */
const OTHER_BODIES: readonly (readonly [id: string, what: string, pair: Pair])[] = [
  ['18a', 'another JSON value', [{ body: '{"amount":1}' }, { body: '{"amount":2}' }]],
  ['18b', 'C80: another order in an array', [{ body: '[1,2]' }, { body: '[2,1]' }]],
  ['18c', 'C80: a member twice instead of once', [{ body: '{"a":1,"a":2}' }, { body: '{"a":2}' }]],
  ['18d', 'C81: another integer, which a double cannot tell from the first', [{ body: '{"a":9007199254740993}' }, { body: '{"a":9007199254740992}' }]],
  ['18e', 'C81: the decomposed form of a character', [{ body: '{"a":"\u00e9"}' }, { body: '{"a":"e\u0301"}' }]],
  ['18f', 'C83: another media type', [{ type: 'application/json', body: '{}' }, { type: 'text/plain', body: '{}' }]],
  ['18g', 'C35: another byte in a file', [{ body: file('a', 'f') }, { body: file('b', 'f') }]],
  ['18h', 'C35: another file name', [{ body: file('a', 'f') }, { body: file('a', 'g') }]],
  ['18i', 'C35: another order of equal form fields', [{ body: form(['tag', 'a'], ['tag', 'b']) }, { body: form(['tag', 'b'], ['tag', 'a']) }]],
  ['24a', 'another body that is no UTF-8 either', [{ body: new Uint8Array([0xff, 0x01]), type: 'application/octet-stream' }, { body: new Uint8Array([0xfe, 0x01]), type: 'application/octet-stream' }]],
  ['24b', 'another body that is no UTF-8 either, and is called JSON', [{ body: new Uint8Array([0xff, 0x01]) }, { body: new Uint8Array([0xfe, 0x01]) }]],
  ['27b', 'an absent member instead of null', [{ body: '{"a":null}' }, { body: '{}' }]],
];

/** Requests that ask for the same thing as the first. */
const SAME: readonly (readonly [id: string, what: string, pair: Pair])[] = [
  ['22a', 'C80: with members in another order and other white space', [{ body: '{"a":1,"b":{"c":2,"d":3}}' }, { body: ' { "b" : {"d":3,\n"c":2}, "a":1 } ' }]],
  ['22b', 'with other escapes of the same characters', [{ body: '{"a":"\\u00e9"}' }, { body: '{"a":"\u00e9"}' }]],
  ['22c', 'C81: with 1 written as 1.0 or 1e0', [{ body: '{"a":[1,1]}' }, { body: '{"a":[1.0,1e0]}' }]],
  ['22d', 'C83: with a charset', [{ type: 'application/json' }, { type: 'application/json; charset=utf-8' }]],
  ['22e', 'C83: with different query names in another order', [{ path: '/charges?a=1&b=2' }, { path: '/charges?b=2&a=1' }]],
  ['23a', 'C35: with the same form and another boundary', [{ body: photo() }, { body: photo() }]],
  ['27a', 'without a body instead of with an empty one', [{ body: '' }, { body: null, type: 'application/json' }]],
];

const isNotFirst = ([id, what, [first, other]]: (typeof OTHERS)[number]): Fact => ({
  id,
  name: `${what} under the same key is refused or runs by itself, and the first keeps its answer`,
  async run({ scenario, words }) {
    const charge = scenario();
    const answer = await charge.send(first);
    const second = await charge.send(other);
    ensureStatus(second, { words, is: [201, 'reused'] }, 'the other request');
    const own = second.status === 201;
    await ensureRuns(charge, own ? 2 : 1);
    ensureSame(await charge.send(first), answer);
    if (own) ensureSame(await charge.send(other), second);
    await ensureRuns(charge, own ? 2 : 1);
  },
});

const isReuse = ([id, what, [first, other]]: (typeof OTHER_BODIES)[number]): Fact => ({
  id,
  name: `${what} under the same key is refused, and the first keeps its answer`,
  async run({ scenario, words }) {
    const charge = scenario();
    const answer = await charge.send(first);
    const refused = await charge.send(other);
    ensureStatus(refused, { words, is: ['reused'] }, 'the other request');
    ensure(!refused.headers.has('retry-after'), 'no time is named after which it would be accepted');
    ensureSame(await charge.send(first), answer);
    await ensureRuns(charge, 1);
  },
});

/** 'C80: with …' → 'C80: a request with … is a repeat'. */
const repeatName = (what: string): string => what.replace(/^(C\d+: )?(.*)$/, '$1a request $2 is a repeat');

const isRepeat = ([id, what, [first, again]]: (typeof SAME)[number]): Fact => ({
  id,
  name: repeatName(what),
  async run({ scenario }) {
    const charge = scenario();
    const answer = await charge.send(first);
    ensureSame(await charge.send(again), answer);
    await ensureRuns(charge, 1);
  },
});

const mismatchInProgress = async ({ scenario, words }: Stage): Promise<void> => {
  const charge = scenario({ hold: true }, {});
  const { answer: running } = await startHeld(charge);
  const other = await charge.send({ body: '{"amount":1}' });
  ensureStatus(other, { words, is: ['reused'] }, 'another request');
  ensure(!other.headers.has('retry-after'), 'it is not told to come back');
  await charge.release();
  ensureEqual((await running).status, 201, 'the first gets its answer');
  await ensureRuns(charge, 1);
};

/** Which requests are the same request. */
export const fingerprints: readonly Fact[] = [
  ...OTHER_BODIES.map(isReuse),
  ...OTHERS.map(isNotFirst),
  ...SAME.map(isRepeat),
  {
    id: '18j',
    name: 'the refusal of another request has the draft’s title, and no new key is called safe after a success',
    wording: true,
    async run({ scenario }) {
      const charge = scenario();
      await charge.send();
      const refused = await charge.send({ body: '{"amount":1}' });
      ensureEqual(refused.status, 422, 'the status');
      ensureMembers(refused, { code: 'idempotency_key_reused', title: 'Idempotency-Key is already used', retryable: false, safe_new_key: false }, 'what the document says');
    },
  },
  {
    id: '25a',
    name: 'C79: another request under a key in progress is refused as such at once, not told to wait',
    run: mismatchInProgress,
  },
  {
    id: '26a',
    name: 'a new key with the same body runs again',
    async run({ scenario }) {
      const charge = scenario();
      const [first, second] = [await charge.send({ key: `${charge.key}-1` }), await charge.send({ key: `${charge.key}-2` })];
      ensureEqual([first.status, second.status], [201, 201], 'both run');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '50d',
    name: 'where keys count per tenant and not per endpoint, another endpoint refuses the key',
    needs: ['endpoints'],
    config: { perEndpoint: false },
    async run({ scenario, words }) {
      const charge = scenario();
      await charge.send({ path: '/charges' });
      const refused = await charge.send({ path: '/refunds' });
      ensureStatus(refused, { words, is: ['reused'] }, 'the other endpoint');
      ensure(codeOf(refused) !== 'idempotency_in_progress', 'it is not told to wait');
      await ensureRuns(charge, 1);
    },
  },
];
