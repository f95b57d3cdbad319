import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import { toBase64, type Step } from '../scenario.js';
import { codeOf, ensureMembers, ensureRuns, ensureSame, ensureStatus, sendTwice } from './common.js';

const KEPT: Readonly<Record<string, string>> = { location: '/charges/1', etag: '"v1"', 'content-type': 'text/csv', 'x-custom': 'kept' };

/** Belongs to one connection, one moment or one caller. */
const PASSING: Readonly<Record<string, string>> = {
  'x-request-id': 'r-1', 'x-ratelimit-remaining': '3', 'access-control-allow-origin': 'https://a.example', 'www-authenticate': 'Basic',
};

const headersOf = ({ headers }: Pick<Response, 'headers'>, names: readonly string[]): Record<string, string | null> =>
  Object.fromEntries(names.map(name => [name, headers.get(name)]));

const csv = (headers: NonNullable<Step['headers']>): Step => ({ body: toBase64('id\n1\n'), headers: [['content-type', 'text/csv'], ...headers] });

/** What is stored of an answer. */
export const answers: readonly Fact[] = [
  {
    id: '4a',
    name: 'Location, ETag, Content-Type and headers of one’s own are equal on the replay',
    async run({ scenario }) {
      const [first, again] = await sendTwice(scenario({ body: toBase64('id\n1\n'), headers: Object.entries(KEPT) }));
      // A framework may add a charset; then it does so on both.
      ensureEqual(first.headers.get('location'), KEPT['location'], 'the first answer has what the handler said');
      ensureEqual(headersOf(again, Object.keys(KEPT)), headersOf(first, Object.keys(KEPT)), 'the replay has the same');
    },
  },
  {
    id: '4b',
    name: 'C86: a header that comes twice comes twice on the replay',
    async run({ scenario }) {
      const [first, again] = await sendTwice(scenario(csv([['link', '</a>; rel=a'], ['link', '</b>; rel=b']])));
      ensureEqual(first.headers.get('link'), '</a>; rel=a, </b>; rel=b', 'the first answer has both');
      ensureEqual(again.headers.get('link'), '</a>; rel=a, </b>; rel=b', 'the replay has both');
    },
  },
  {
    id: '5a',
    name: 'cookies of the first answer, all of them, never come again',
    async run({ scenario }) {
      const [first, again] = await sendTwice(scenario(csv([['set-cookie', 'session=1; Path=/'], ['set-cookie', 'theme=dark']])));
      ensureEqual(first.headers.getSetCookie(), ['session=1; Path=/', 'theme=dark'], 'the first answer has its cookies');
      ensureEqual(again.headers.getSetCookie(), [], 'the replay has none');
    },
  },
  {
    id: '5b',
    name: 'C86: what belongs to one connection, moment or caller is not replayed',
    async run({ scenario }) {
      const [first, again] = await sendTwice(scenario(csv(Object.entries(PASSING))));
      ensureEqual(first.headers.get('x-request-id'), 'r-1', 'the first answer has it');
      const names = Object.keys(PASSING);
      ensureEqual(headersOf(again, names), Object.fromEntries(names.map(name => [name, null])), 'the replay has nothing of it');
    },
  },
  {
    id: '6a',
    name: 'Date and Content-Length of a replay are its own',
    async run({ scenario }) {
      const old = 'Tue, 01 Jan 2030 00:00:00 GMT';
      const [, again] = await sendTwice(scenario(csv([['date', old]])));
      ensure(again.headers.get('date') !== old, 'the replay has a date of its own, or leaves it to the server');
      ensureEqual(Number(again.headers.get('content-length') ?? again.bytes.length), again.bytes.length, 'its Content-Length is that of its body');
    },
  },
  {
    id: '52a',
    name: 'an answer too large to store is given whole once, and its request never runs again',
    async run({ scenario, oversize, words }) {
      const charge = scenario({ size: oversize });
      const first = await charge.send();
      ensureEqual([first.status, first.bytes.length], [201, oversize], 'the first answer is complete');
      const again = await charge.send();
      if (again.status === 201) ensureSame(again, first);
      else ensureStatus(again, { words, is: ['gone'] }, 'the repeat');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '52b',
    name: 'its repeat is told what the answer was, and that no new key is safe',
    wording: true,
    async run({ scenario, oversize }) {
      const charge = scenario({ size: oversize });
      await charge.send();
      const again = await charge.send();
      ensureEqual(again.status, 409, 'the status');
      ensureMembers(again, { code: 'idempotency_result_unavailable', original_status: 201, retryable: false, safe_new_key: false }, 'what the document says');
    },
  },
  {
    id: '52c',
    name: 'a request larger than the server accepts is refused, and leaves nothing under its key',
    config: { maxRequestBytes: 10 },
    async run({ scenario }) {
      const charge = scenario();
      ensureEqual((await charge.send({ body: '01234567890', type: 'text/plain' })).status, 413, 'one byte too many');
      await ensureRuns(charge, 0);
      ensureEqual((await charge.send({ body: '0123456789', type: 'text/plain' })).status, 201, 'what fits runs under the same key');
    },
  },
  {
    id: '53a',
    name: 'a live stream reaches its client live, and its repeat never runs silently',
    async run({ scenario }) {
      const charge = scenario({ stream: 'live', status: 200, headers: [['content-type', 'text/event-stream']] });
      const live = await charge.begin();
      const reader = (live.body as ReadableStream<Uint8Array>).getReader();
      ensureEqual(new TextDecoder().decode((await reader.read()).value), 'data: 1\n\n', 'the first event is there while the stream goes on');
      const again = charge.begin();
      again.then(response => response.body?.cancel()).catch(() => {});
      await charge.release();
      ensureEqual((await reader.read()).done, true, 'the stream ends');
      await again;
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '53b',
    name: 'an answer that was written in pieces is stored like any other',
    async run({ scenario }) {
      await sendTwice(scenario({ stream: 'whole' }));
    },
  },
  {
    id: '53c',
    name: 'an answer that breaks off is not stored as if it were whole, and never runs again',
    async run({ scenario, words }) {
      const charge = scenario({ stream: 'broken' }, {});
      await charge.send().catch(() => {});
      ensureStatus(await charge.send(), { words, is: ['gone', 'indeterminate'] }, 'the repeat');
      await ensureRuns(charge, 1);
    },
  },
  {
    id: '53d',
    name: 'the repeat of a stream that was not stored is told so',
    wording: true,
    async run({ scenario }) {
      const charge = scenario({ stream: 'live', status: 200, headers: [['content-type', 'text/event-stream']] });
      await charge.begin();
      ensureEqual(codeOf(await charge.send()), 'idempotency_result_unavailable', 'the code');
    },
  },
];
