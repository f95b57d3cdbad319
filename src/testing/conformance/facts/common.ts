import { ensure, ensureEqual } from '../../check.js';
import type { Answer, Scenario, Sent, Stage } from '../stage.js';
import type { StatusWord, Words } from '../target.js';

/** Whether an answer is marked as a replay, in the words of the server. */
export const isMarked = ({ headers }: Pick<Answer, 'headers'>, { words }: Stage): boolean => {
  if (words.replayMarker === null) return false;
  const [name, value] = words.replayMarker;
  return headers.get(name)?.toLowerCase() === value.toLowerCase();
};

/** Statuses that are right: by their number, or by the name of the words that list them. */
interface Expected {
  readonly words: Words;
  readonly is: readonly (number | StatusWord)[];
}

export const ensureStatus = ({ status }: Pick<Answer, 'status'>, { words, is }: Expected, what: string): void => {
  const allowed = new Set(is.flatMap(each => (typeof each === 'number' ? each : words[each])));
  const named = is.filter(each => typeof each === 'string').map(word => `words.${word}`);
  // What was let through is no refusal in other words.
  const hint = status >= 400 && named.length > 0 ? ` (or name your status in ${named.join(' or ')})` : '';
  ensure(allowed.has(status), `${what} is answered with ${[...allowed].join(' or ')}${hint}\n  found    ${status}`);
};

export const ensureRuns = async (scenario: Scenario, expected: number): Promise<void> =>
  ensureEqual(await scenario.runs(), expected, 'so often the handler has run');

/** Status and bytes, which is what a repeat is for. */
export const ensureSame = (again: Answer, first: Answer, what = 'a repeat gets the answer of the first request'): void => {
  ensureEqual(again.status, first.status, `${what} (status)`);
  ensureEqual(again.bytes.buffer, first.bytes.buffer, `${what} (bytes)`);
};

/** The machine-readable word of a refusal; undefined where there is none. */
export const codeOf = ({ json }: Answer): unknown => (json as { code?: unknown } | undefined)?.code;

/** Members of a JSON body. */
export const ensureMembers = ({ json }: Answer, members: Readonly<Record<string, unknown>>, what: string): void => {
  const body = (json ?? {}) as Record<string, unknown>;
  ensureEqual(Object.fromEntries(Object.keys(members).map(name => [name, body[name]])), members, what);
};

/** Sends the scenario's request and its repeat, and tells that one run has answered both. */
export const sendTwice = async (scenario: Scenario): Promise<readonly [first: Answer, again: Answer]> => {
  const first = await scenario.send();
  const again = await scenario.send();
  ensureSame(again, first);
  await ensureRuns(scenario, 1);
  return [first, again];
};

/** A run that waits until its scenario is released. */
export interface Held {
  readonly answer: Promise<Answer>;
}

/** Sends a request whose run waits, and resolves when it is running. */
export const startHeld = async (scenario: Scenario, sent?: Sent): Promise<Held> => {
  const answer = scenario.send(sent);
  // A server that dies gives none; whoever wants the answer awaits it.
  answer.catch(() => {});
  await scenario.held();
  return { answer };
};
