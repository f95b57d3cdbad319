import { ensure, ensureEqual } from '../../check.js';
import type { Fact } from '../fact.js';
import type { Answer, Stage } from '../stage.js';
import { PAGE_ORIGIN } from '../target.js';
import { isMarked } from './common.js';

const list = ({ headers }: Pick<Answer, 'headers'>, name: string): string[] => (headers.get(name) ?? '').toLowerCase().split(',').map(item => item.trim());

const fromPage = { headers: { origin: PAGE_ORIGIN } };

const ensureReadable = (answer: Answer, { words }: Stage): void => {
  ensure([PAGE_ORIGIN, '*'].includes(answer.headers.get('access-control-allow-origin') ?? ''), 'the page may read the answer');
  const exposed = list(answer, 'access-control-expose-headers');
  for (const name of ['Retry-After', words.replayMarker?.[0] ?? '']) ensure(exposed.includes(name.toLowerCase()), `the page may read ${name}\n  found    ${exposed.join(', ')}`);
};

/** What a page of another origin may do and see. */
export const cors: readonly Fact[] = [
  {
    id: '58a',
    name: 'C13: a preflight allows the key header, and needs no key itself',
    needs: ['cors'],
    async run({ scenario, words }) {
      const charge = scenario();
      const preflight = { ...fromPage.headers, 'access-control-request-method': 'POST', 'access-control-request-headers': `content-type, ${words.header.toLowerCase()}` };
      const answer = await charge.send({ method: 'OPTIONS', key: null, body: null, headers: preflight });
      ensure(answer.status < 300, `the preflight succeeds\n  found    ${answer.status}`);
      const allowed = list(answer, 'access-control-allow-headers');
      ensure(allowed.includes(words.header.toLowerCase()), `Access-Control-Allow-Headers names the key header\n  found    ${allowed.join(', ')}`);
      ensureEqual(await charge.runs(), 0, 'the handler does not run');
    },
  },
  {
    id: '58b',
    name: 'C13: the page may read the replay marker and Retry-After, on first answers, replays and refusals',
    needs: ['cors'],
    async run(stage) {
      const charge = stage.scenario();
      const [first, again] = [await charge.send(fromPage), await charge.send(fromPage)];
      ensure(isMarked(again, stage), 'the repeat is a replay');
      for (const answer of [first, again, await charge.send({ ...fromPage, key: null }), await charge.send({ ...fromPage, body: '{}' })]) ensureReadable(answer, stage);
    },
  },
];
