import { deriveKey, newKey } from '../../key.js';
import { ensure } from '../check.js';
import { promised } from './abilities.js';
import { ORIGIN, readAnswer, requestOf, type Answer, type Sent } from './exchange.js';
import { CONTROL_HEADER, SCRIPT_HEADER, writeScript, type ScenarioReport, type Step } from './scenario.js';
import type { Server, Subject, Words } from './target.js';

/** Requests that share a script, a key and a count of runs. */
export interface Scenario {
  readonly id: string;
  /** Of requests that say no other. */
  readonly key: string;
  send(sent?: Sent): Promise<Answer>;
  /** Sends, and leaves the body of the answer to the case. */
  begin(sent?: Sent): Promise<Response>;
  /** Sends a request with header lines as they are given, and without the key that it would have. Answers with the status. */
  sendLines(lines: readonly (readonly [name: string, value: string])[]): Promise<number>;
  report(): Promise<ScenarioReport>;
  runs(): Promise<number>;
  /** Resolves when `count` runs have come to where they wait. */
  held(count?: number): Promise<void>;
  /** Lets the runs that wait go on. */
  release(): Promise<void>;
}

/** What scenarios of one case have in common. */
export interface ScenarioOptions {
  readonly subject: Subject;
  /** All that are open, the case's own first. */
  readonly servers: readonly [Server, ...Server[]];
  readonly words: Words;
  eventually(holds: () => Promise<boolean>): Promise<void>;
}

/** A key that nobody has used. Not time-ordered: a server may refuse a key that says how old it is. */
const freshKey = (): string => deriveKey(ORIGIN, [newKey()]);

/** A case that has failed already asks for no further answer; that one fails too must not end the process. */
const heard = <T>(answer: Promise<T>): Promise<T> => {
  answer.catch(() => {});
  return answer;
};

/** Asks the scenario handler of a server. */
const control = async (server: Server, id: string, what: 'report' | 'release'): Promise<ScenarioReport> => {
  const headers = { [SCRIPT_HEADER]: writeScript({ id, steps: [] }), [CONTROL_HEADER]: what };
  const response = await server.fetch(new Request(`${server.origin ?? ORIGIN}/charges`, { headers }));
  ensure(response.ok, `the scenario handler answers the kit's own GET requests; it answered ${response.status}. Mount it for every method and path, behind the dedup layer`);
  return (await response.json()) as ScenarioReport;
};

const addUp = (reports: readonly ScenarioReport[]): ScenarioReport => {
  const sum = (name: keyof ScenarioReport): number => reports.reduce((total, report) => total + report[name], 0);
  return { runs: sum('runs'), held: sum('held'), effects: sum('effects'), aborted: sum('aborted'), forbidden: sum('forbidden') };
};

/** Begins a scenario under a key of its own. */
export const beginScenario = (steps: readonly Step[], { subject, servers, words, eventually }: ScenarioOptions): Scenario => {
  const id = newKey();
  const key = freshKey();
  const [first] = servers;
  const askAll = (what: 'report' | 'release'): Promise<ScenarioReport[]> => Promise.all(servers.map(server => control(server, id, what)));
  const report = async (): Promise<ScenarioReport> => subject.report?.(id) ?? addUp(await askAll('report'));
  const begin = (sent: Sent = {}): Promise<Response> => {
    const to = sent.to ?? first;
    return heard(to.fetch(requestOf({ id, steps: sent.steps ?? steps }, key, words, { ...sent, to })));
  };
  return {
    id, key, begin, report,
    send: sent => heard(begin(sent).then(readAnswer)),
    sendLines: lines => promised(first.sendLines, 'header lines', 'sendLines')(requestOf({ id, steps }, key, words, { key: null, to: first }), lines),
    runs: async () => (await report()).runs,
    held: (count = 1) => eventually(async () => (await report()).held >= count),
    release: async () => void (await (subject.release?.(id) ?? askAll('release'))),
  };
};
