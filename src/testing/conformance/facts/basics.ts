import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { toBase64, type Step } from '../scenario.js';
import type { Stage } from '../stage.js';
import { codeOf, ensureMembers, ensureRuns, ensureStatus, isMarked, sendTwice } from './common.js';

const sameBytes =
  (body: string | Uint8Array, type: string) =>
  async ({ scenario }: Stage): Promise<void> => {
    const step: Step = { body: toBase64(body), headers: [['content-type', type]] };
    const [first] = await sendTwice(scenario(step));
    ensureEqual(first.bytes.buffer, typeof body === 'string' ? new TextEncoder().encode(body).buffer : new Uint8Array(body).buffer, 'already the first answer is what the handler gave');
  };

/** Statuses whose answers have no body. */
const bodiless = (...statuses: readonly number[]) => async ({ scenario }: Stage): Promise<void> => {
  for (const status of statuses) {
    const [, again] = await sendTwice(scenario({ status, body: null, headers: [] }, { status: 500 }));
    ensureEqual([again.status, again.bytes.length], [status, 0], 'the repeat has the status, and no body');
  }
};

/** The plain way: one key, one run, one answer. */
export const basics: readonly Fact[] = [
  {
    id: '1a',
    name: 'a request without a key is refused where one is required, and nothing runs',
    async run({ scenario, words }) {
      const charge = scenario();
      ensureStatus(await charge.send({ key: null }), { words, is: ['missing'] }, 'a request without a key');
      await ensureRuns(charge, 0);
    },
  },
  {
    id: '1b',
    name: 'the refusal of a request without a key is a problem document with the draft’s title',
    wording: true,
    async run({ scenario }) {
      const refused = await scenario().send({ key: null });
      ensureEqual([refused.status, refused.headers.get('content-type'), refused.headers.get('cache-control')], [400, 'application/problem+json', 'no-store'], 'status and headers');
      ensureMembers(refused, { code: 'idempotency_key_missing', title: 'Idempotency-Key is missing', status: 400 }, 'what the document says');
    },
  },
  {
    id: '1c',
    name: 'where no key is required, a request without one runs every time',
    config: { required: false },
    async run({ scenario }) {
      const charge = scenario();
      const answers = [await charge.send({ key: null }), await charge.send({ key: null })];
      ensureEqual(answers.map(({ status }) => status), [201, 201], 'both are answered');
      await ensureRuns(charge, 2);
    },
  },
  {
    id: '1d',
    name: 'an answer that no key protects says so',
    config: { required: false },
    wording: true,
    async run({ scenario }) {
      ensureEqual((await scenario().send({ key: null })).headers.get('idempotency-status'), 'none', 'Idempotency-Status');
    },
  },
  {
    id: '2a',
    name: 'a repeat under the same key gets the same status and the same bytes from one run',
    async run({ scenario }) {
      const [first] = await sendTwice(scenario());
      ensureEqual(first.status, 201, 'the handler’s own status');
    },
  },
  {
    id: '2b',
    name: 'a replay is marked as one',
    async run(stage) {
      const [, again] = await sendTwice(stage.scenario());
      ensure(isMarked(again, stage), `a replay carries ${stage.words.replayMarker?.join(': ') ?? 'a header that marks it'}`);
    },
  },
  {
    id: '2c',
    name: 'first answers say that they are stored, replays that they are replayed',
    wording: true,
    async run({ scenario }) {
      const statuses = (await sendTwice(scenario())).map(({ headers }) => headers.get('idempotency-status'));
      ensureEqual(statuses, ['stored', 'replayed'], 'Idempotency-Status');
    },
  },
  {
    id: '3a',
    name: 'the first answer is not marked as a replay',
    needs: ['replay marker'],
    async run(stage) {
      const [first, again] = await sendTwice(stage.scenario());
      ensure(isMarked(again, stage), 'replays are marked, so that first answers can be told from them');
      ensure(!isMarked(first, stage), 'the first answer carries no replay marker');
    },
  },
  {
    id: '7a',
    name: '204 is replayed without a body and without a second run',
    run: bodiless(204),
  },
  {
    id: '7b',
    name: 'C88: 205 and 304 are replayed without a body and without a failure',
    run: bodiless(205, 304),
  },
  {
    id: '8a',
    name: '303 is replayed with its Location',
    async run({ scenario }) {
      const [, again] = await sendTwice(scenario({ status: 303, body: null, headers: [['location', '/charges/1']] }));
      ensureEqual(again.headers.get('location'), '/charges/1', 'the Location of the replay');
    },
  },
  {
    id: '9a',
    name: 'bytes that are no text arrive intact, first and replayed',
    run: sameBytes(new Uint8Array([0xff, 0xfe, 0x00, 0x80]), 'application/octet-stream'),
  },
  {
    id: '10a',
    name: 'C87: CRLF, a byte order mark, a member twice, 1.0, a long integer and NUL are replayed byte by byte',
    run: sameBytes('\uFEFF{"z":1, "a":1.0,"a":2,\r\n "big":12345678901234567890, "nul":"x\0y"}', 'application/json'),
  },
  {
    id: '10b',
    name: 'C87: text that is no JSON is replayed as it is, whatever its type says',
    run: sameBytes('half a {', 'application/json'),
  },
  {
    id: '10c',
    name: 'C87: an empty body is replayed as an empty body',
    run: sameBytes('', 'text/plain'),
  },
  {
    id: '11a',
    name: 'GET, HEAD and OPTIONS run every time, with a key too, and leave nothing under it',
    async run(stage) {
      const read = stage.scenario({ status: 200 });
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'GET']) ensureEqual((await read.send({ method, body: null })).status, 200, `${method} is answered by the handler`);
      await ensureRuns(read, 4);
      const written = await read.send({ body: null });
      ensure(written.status === 200 && !isMarked(written, stage), 'a POST under the key is the first of its kind');
      await ensureRuns(read, 5);
    },
  },
  {
    id: '11b',
    name: 'an answer to a method that needs no key says that the key was ignored',
    wording: true,
    async run({ scenario }) {
      ensureEqual((await scenario().send({ method: 'GET', body: null })).headers.get('idempotency-status'), 'ignored', 'Idempotency-Status');
    },
  },
  {
    id: '57a',
    name: 'a missing key, an invalid one, another request and a run in progress can be told apart',
    async run({ scenario, words }) {
      const charge = scenario({ hold: true }, {});
      const running = charge.send();
      await charge.held();
      const refusals = [await charge.send({ key: null }), await charge.send({ key: '""' }), await charge.send({ body: '{"amount":1}' })];
      if (words.duplicates === 'refused') refusals.push(await charge.send());
      const told = new Set(refusals.map(({ status, bytes }) => `${status} ${new TextDecoder().decode(bytes)}`));
      ensureEqual(refusals.filter(({ status }) => status < 400).length, 0, 'all of them are refused');
      ensureEqual(told.size, refusals.length, 'no two of them have status and body in common');
      await charge.release();
      await running;
    },
  },
  {
    id: '57b',
    name: 'every refusal has a code and a type of its own',
    wording: true,
    async run({ scenario }) {
      const charge = scenario({ hold: true }, {});
      const running = charge.send();
      await charge.held();
      const refusals = [await charge.send({ key: null }), await charge.send({ key: '""' }), await charge.send({ body: '{"amount":1}' }), await charge.send()];
      const codes = ['idempotency_key_missing', 'idempotency_key_invalid', 'idempotency_key_reused', 'idempotency_in_progress'];
      ensureEqual(refusals.map(codeOf), codes, 'the codes');
      ensureEqual(refusals.map(({ json }) => (json as { type: string }).type), codes.map(code => `urn:samekey:problem:${code}`), 'the types');
      await charge.release();
      await running;
    },
  },
];
