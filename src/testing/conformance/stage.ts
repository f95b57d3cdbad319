import { systemClock } from '../../clock.js';
import { promised } from './abilities.js';
import type { Step } from './scenario.js';
import { beginScenario, type Scenario } from './scenario-run.js';
import { startTarget, WORDS, type Ability, type ConformanceTarget, type Server, type ServerConfig, type Subject, type Words } from './target.js';

export type { Answer, Sent } from './exchange.js';
export type { Scenario } from './scenario-run.js';

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
  /** Runs that the server can hold at once. */
  readonly atOnce: number;
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

export interface StageOptions {
  readonly config: ServerConfig;
  /** Aborts when the case is over. */
  readonly over: AbortSignal;
  /** ms of real time that a silent server is waited for. */
  readonly patience: number;
}

/** ms between two looks at something that another task is about to do. */
const LOOK_MS = 2;

/** ms of the subject's time that pass between two looks. */
const TICK_MS = 100;

/** So that no run of a case outlives it. A server that is silent is not waited for once more. */
const releaseAll = async (scenarios: readonly Scenario[], patience: number): Promise<void> => {
  const waited = new AbortController();
  const late = systemClock.sleep(patience, waited.signal).catch(() => {});
  await Promise.race([Promise.allSettled(scenarios.map(scenario => scenario.release())), late]);
  waited.abort();
};

/** A fresh subject with its first server. */
export const openStage = async (target: ConformanceTarget, { config, over, patience }: StageOptions): Promise<Stage> => {
  const subject = await startTarget(target);
  const words: Words = { ...WORDS, ...target.words };
  const servers: [Server, ...Server[]] = [await subject.open(config)];
  const scenarios: Scenario[] = [];
  const eventually = async (holds: () => Promise<boolean> | boolean): Promise<void> => {
    while (!(await holds())) await systemClock.sleep(LOOK_MS, over);
  };
  const advance = (ms: number): Promise<void> => promised(subject.advance, 'time', 'advance')(ms);
  return {
    subject, server: servers[0], words, advance, eventually,
    lease: target.lease ?? 30_000,
    retention: target.retention ?? 86_400_000,
    margin: (subject.drift ?? 0) + 1,
    oversize: target.oversize ?? 1_048_577,
    bulk: target.bulk ?? 2_500,
    atOnce: target.atOnce ?? 8,
    can: ability => target.abilities?.includes(ability) ?? false,
    async open(other = config) {
      const server = await subject.open(other);
      servers.push(server);
      return server;
    },
    scenario(...steps) {
      const scenario = beginScenario(steps, { subject, servers, words, eventually });
      scenarios.push(scenario);
      return scenario;
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
      await releaseAll(scenarios, patience);
      await subject.dispose?.();
    },
  };
};
