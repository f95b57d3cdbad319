import { systemClock } from '../../clock.js';
import { deriveKey, newKey } from '../../key.js';
import { ensure } from '../check.js';
import { CONTROL_HEADER, GUARD_HEADER, SCRIPT_HEADER, TENANT_HEADER, writeScript, type ScenarioReport, type Script, type Step } from './scenario.js';
import { startTarget, WORDS, type Ability, type ConformanceTarget, type Server, type ServerConfig, type Subject, type Words } from './target.js';

/** A request of a case. What is not said is as in every other request of its scenario, so that two of them are repeats. */
export interface Sent {
  /** null: none. @default the scenario's own */
  readonly key?: string | null | undefined;
  /** @default '{"amount":4200}' */
  readonly body?: BodyInit | null | undefined;
  /** Content type of the body; null: none. @default 'application/json', and what the platform says for a form */
  readonly type?: string | null | undefined;
  /** @default 'POST' */
  readonly method?: string | undefined;
  /** Path and query. @default '/charges' */
  readonly path?: string | undefined;
  /** @default 'acme' */
  readonly tenant?: string | undefined;
  /** Turned away by the guard with this status. @default not at all */
  readonly guard?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What this request's run does. @default the scenario's next step */
  readonly steps?: readonly Step[] | undefined;
  /** @default the server that the case has opened */
  readonly to?: Server | undefined;
}

/** An answer that was read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The parsed body; undefined where it is not JSON. */
  readonly json: unknown;
}

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

/** What a case has to work with. */
export interface Stage {
  readonly subject: Subject;
  /** The server that the case has asked for. */
  readonly server: Server;
  readonly words: Words;
  /** ms */
  readonly lease: number;
  /** ms */
  readonly retention: number;
  /** ms before and after a point in time that are surely before and after it. */
  readonly margin: number;
  /** Bytes. */
  readonly oversize: number;
  readonly bulk: number;
  can(ability: Ability): boolean;
  /** Another process on the same records. */
  open(config?: ServerConfig): Promise<Server>;
  /** Begins a scenario; each step is one run, the last one all further runs. @default every run answers 201 */
  scenario(...steps: readonly Step[]): Scenario;
  /** Lets `ms` pass. */
  advance(ms: number): Promise<void>;
  /** Resolves when `holds` does; gives up with the case. */
  eventually(holds: () => Promise<boolean> | boolean): Promise<void>;
  /** Lets time pass until `promise` settles, where the subject's time is the case's. */
  until<T>(promise: Promise<T>): Promise<T>;
  dispose(): Promise<void>;
}

const ORIGIN = 'https://shop.example';
const CHARGE = '{"amount":4200}';

/** A key that nobody has used. Not time-ordered: a server may refuse a key that says how old it is. */
const freshKey = (): string => deriveKey(ORIGIN, [newKey()]);

/** ms between two looks at something that another task is about to do. */
const LOOK_MS = 2;

/** ms of the subject's time that pass between two looks. */
const TICK_MS = 100;

const jsonOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
};

/** A case that has failed already asks for no further answer; that one fails too must not end the process. */
const heard = <T>(answer: Promise<T>): Promise<T> => {
  answer.catch(() => {});
  return answer;
};

export const readAnswer = async (response: Response): Promise<Answer> => {
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes, json: jsonOf(bytes) };
};

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

const requestOf = (script: Script, key: string, { header }: Words, sent: Sent): Request => {
  const { method = 'POST', path = '/charges', body = CHARGE, tenant = 'acme', guard, to, signal } = sent;
  const type = sent.type === undefined && !(body instanceof FormData) && body !== null ? 'application/json' : sent.type;
  const headers = new Headers([
    [SCRIPT_HEADER, writeScript(script)],
    [TENANT_HEADER, tenant],
    ...(sent.key === null ? [] : [[header, sent.key ?? key] satisfies [string, string]]),
    ...(type ? [['content-type', type] satisfies [string, string]] : []),
    ...(guard === undefined ? [] : [[GUARD_HEADER, String(guard)] satisfies [string, string]]),
    ...Object.entries(sent.headers ?? {}),
  ]);
  const init = { method, headers, redirect: 'manual' as const, ...(signal && { signal }), ...(!BODILESS.has(method) && { body }) };
  return new Request(`${to?.origin ?? ORIGIN}${path}`, init);
};

const control = async (server: Server, id: string, what: 'report' | 'release'): Promise<ScenarioReport> => {
  const headers = { [SCRIPT_HEADER]: writeScript({ id, steps: [] }), [CONTROL_HEADER]: what };
  const response = await server.fetch(new Request(`${server.origin ?? ORIGIN}/charges`, { headers }));
  ensure(response.ok, `the scenario handler answers the kit's own GET requests; it answered ${response.status}. Mount it for every method and path, behind the dedup layer`);
  return (await response.json()) as ScenarioReport;
};

const addUp = (reports: readonly ScenarioReport[]): ScenarioReport => {
  const sum = (name: keyof ScenarioReport): number => reports.reduce((total, report) => total + report[name], 0);
  // Effects are counted where the records are: all servers see the same ones.
  const effects = reports.reduce((most, report) => Math.max(most, report.effects), 0);
  return { runs: sum('runs'), held: sum('held'), aborted: sum('aborted'), forbidden: sum('forbidden'), effects };
};

/** A subject's abilities, which its target has promised. */
const promised = <T>(ability: T | undefined, name: string): T => {
  ensure(ability, `the target names an ability that needs '${name}', so it has it. Add it, or do not name the ability`);
  return ability;
};

export const openStage = async (target: ConformanceTarget, config: ServerConfig, over: AbortSignal): Promise<Stage> => {
  const subject = await startTarget(target);
  const words: Words = { ...WORDS, ...target.words };
  const servers: Server[] = [await subject.open(config)];
  const scenarios: Scenario[] = [];
  const first = servers[0] as Server;

  const eventually = async (holds: () => Promise<boolean> | boolean): Promise<void> => {
    while (!(await holds())) await systemClock.sleep(LOOK_MS, over);
  };
  const askAll = (id: string, what: 'report' | 'release'): Promise<ScenarioReport[]> => Promise.all(servers.map(server => control(server, id, what)));

  const scenario = (...steps: readonly Step[]): Scenario => {
    const id = newKey();
    const key = freshKey();
    const begin = (sent: Sent = {}): Promise<Response> => {
      const to = sent.to ?? first;
      return heard(to.fetch(requestOf({ id, steps: sent.steps ?? steps }, key, words, { ...sent, to })));
    };
    const report = async (): Promise<ScenarioReport> => subject.report?.(id) ?? addUp(await askAll(id, 'report'));
    const runs = async (): Promise<number> => (await report()).runs;
    const opened: Scenario = {
      id, key, begin, report, runs,
      sendLines: lines => promised(first.sendLines, 'sendLines')(requestOf({ id, steps }, key, words, { key: null, to: first }), lines),
      send: sent => heard(begin(sent).then(readAnswer)),
      held: (count = 1) => eventually(async () => (await report()).held >= count),
      release: async () => void (await (subject.release?.(id) ?? askAll(id, 'release'))),
    };
    scenarios.push(opened);
    return opened;
  };

  const advance = (ms: number): Promise<void> => promised(subject.advance, 'advance')(ms);

  return {
    subject, server: first, words, scenario, advance, eventually,
    lease: target.lease ?? 30_000,
    retention: target.retention ?? 86_400_000,
    margin: (subject.drift ?? 0) + 1,
    oversize: target.oversize ?? 1_048_577,
    bulk: target.bulk ?? 2_500,
    can: ability => target.abilities?.includes(ability) ?? false,
    async open(other = config) {
      const server = await subject.open(other);
      servers.push(server);
      return server;
    },
    async until(promise) {
      if (!subject.advance) return promise;
      let settled = false;
      const settle = (): void => void (settled = true);
      promise.then(settle, settle);
      await eventually(async () => settled || (await advance(TICK_MS), settled));
      return promise;
    },
    async dispose() {
      // So that no run of this case outlives it.
      await Promise.allSettled(scenarios.map(each => each.release()));
      await subject.dispose?.();
    },
  };
};
