import type { Settlement, StoredAnswer } from '../../../src/server/index.js';
import type { Mutant } from './mutant.js';

/** A store that keeps something else than the answer; undefined: nothing. */
const keeping = (change: (answer: StoredAnswer) => StoredAnswer | undefined): Pick<Mutant, 'store'> => {
  const changed = (end: Settlement): Settlement => {
    if (end.to !== 'completed') return end;
    const answer = change(end.answer);
    return answer ? { ...end, answer } : { to: 'retryable', keepFingerprint: true, keyRetention: end.keyRetention };
  };
  return { store: ({ store }) => ({ ...store, settle: (hold, end) => store.settle(hold, changed(end)) }) };
};

const reread = (answer: StoredAnswer, read: (text: string) => string): StoredAnswer =>
  answer.body ? { ...answer, body: new TextEncoder().encode(read(new TextDecoder().decode(answer.body))) } : answer;

const isJson = ({ headers }: StoredAnswer): boolean => headers.some(([name, value]) => name === 'content-type' && value.includes('json'));

const asJson = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return JSON.stringify(text);
  }
};

/** Faults in what is kept of an answer. */
export const answerMutants: readonly Mutant[] = [
  {
    name: 'keeps nothing',
    fails: [
      '2a', '2b', '2c', '3a', '4a', '4b', '5a', '5b', '6a', '7a', '7b', '8a', '9a', '10a', '10b', '10c', '12a', '12b', '18a',
      '18b', '18c', '18d', '18e', '18f', '18g', '18h', '18i', '19a', '20a', '20b', '20c', '20d', '21a', '22a', '22b', '22c', '22d', '22e',
      '23a', '24a', '24b', '27a', '27b', '28a', '29b', '30a', '33a', '36a', '37a', '39a', '40a', '41a', '42a', '42b', '43a', '44a', '45a',
      '45c', '46d', '50a', '51a', '52a', '52b', '53a', '53b', '53c', '53d', '54a', '54c', '54d', '54e', '54f', '56a', '56b', '58b', '60a',
      '60c',
    ],
    ...keeping(() => undefined),
  },
  { name: 'keeps the Content-Type only', fails: ['4a', '4b', '8a'], ...keeping(answer => ({ ...answer, headers: answer.headers.filter(([name]) => name === 'content-type') })) },
  { name: 'keeps one header of each name', fails: ['4b'], ...keeping(answer => ({ ...answer, headers: answer.headers.map(([name, value]) => [name, value.split(', ')[0] ?? '']) })) },
  { name: 'keeps bodies as text', fails: ['9a', '10a'], ...keeping(answer => reread(answer, text => text)) },
  { name: 'keeps JSON as JSON', fails: ['10a', '10b', '53b'], ...keeping(answer => (isJson(answer) ? reread(answer, asJson) : answer)) },
  { name: 'keeps an empty body as a space', fails: ['10c'], ...keeping(answer => (answer.body?.length === 0 ? { ...answer, body: new TextEncoder().encode(' ') } : answer)) },
  { name: 'keeps no body as an empty one', fails: ['7a', '7b'], ...keeping(answer => ({ ...answer, body: answer.body ?? (answer.omitted ? null : new Uint8Array()) })) },
  { name: 'keeps no redirects', fails: ['8a'], ...keeping(answer => (answer.status === 303 ? undefined : answer)) },
  { name: 'forgets answers that are too large', fails: ['52a', '52b'], ...keeping(answer => (answer.omitted === 'too_large' ? undefined : answer)) },
  { name: 'forgets streams', fails: ['53a', '53d'], ...keeping(answer => (answer.omitted === 'streaming' ? undefined : answer)) },
  { name: 'forgets streams that break off', fails: ['53c'], ...keeping(answer => (answer.omitted === 'unreadable' ? undefined : answer)) },
  {
    name: 'takes a stream that breaks off for a whole one',
    fails: ['53c'],
    ...keeping(({ omitted, ...answer }) => (omitted === 'unreadable' ? { ...answer, body: new Uint8Array() } : { ...answer, ...(omitted && { omitted }) })),
  },
];
