import { RetryableError } from '../../server/errors.js';
import { CONTROL_HEADER, fromBase64, GUARD_HEADER, readScript, SCRIPT_HEADER, STREAM_HEADER, type ScenarioReport, type Script, type Step } from './scenario.js';

/** What the dedup layer tells a handler of its run, as far as the kit makes use of it. Every part is optional. */
export interface RunContext {
  /** Aborts when the run has lost its key. */
  readonly signal?: AbortSignal | undefined;
  /** Announces that an effect may happen from now on; rejects when it must not. */
  effectStarted?(): Promise<void>;
}

/** Where effects are counted. A server with transactions counts them in a table, through the transaction of the run. */
export interface EffectLedger<Context extends RunContext = RunContext> {
  add(id: string, context: Context | undefined): Promise<void>;
  count(id: string): Promise<number>;
}

/** The handler that stands behind the dedup layer of a server under test, and what the kit asks it. */
export interface Scenarios<Context extends RunContext = RunContext> {
  /** Does what the script of the request says. A fetch-style handler, as `dedup.handle` of `samekey/server` takes it. */
  handler(request: Request, context?: Context): Promise<Response>;
  report(id: string): Promise<ScenarioReport>;
  /** Lets the runs that wait go on, and those to come not wait. */
  release(id: string): Promise<void>;
}

interface Scene {
  runs: number;
  held: number;
  aborted: number;
  forbidden: number;
  readonly released: Promise<void>;
  readonly release: () => void;
}

const newScene = (): Scene => {
  let release = (): void => {};
  const released = new Promise<void>(resolve => (release = resolve));
  return { runs: 0, held: 0, aborted: 0, forbidden: 0, released, release };
};

const memoryLedger = (): EffectLedger => {
  const counts = new Map<string, number>();
  return {
    add: async id => void counts.set(id, (counts.get(id) ?? 0) + 1),
    count: async id => counts.get(id) ?? 0,
  };
};

const EVENT = new TextEncoder().encode('data: 1\n\n');

const streamOf = (kind: NonNullable<Step['stream']>, released: Promise<void>): ReadableStream<Uint8Array> => {
  let pieces = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      pieces += 1;
      if (pieces === 1 || (pieces === 2 && kind === 'whole')) return controller.enqueue(EVENT);
      if (kind === 'broken') return controller.error(new Error('This stream breaks off, as its script says.'));
      if (kind === 'live') await released;
      return controller.close();
    },
  });
};

const DEFAULT_HEADERS: NonNullable<Step['headers']> = [['content-type', 'application/json']];

const bodyOf = (step: Step, script: Script, run: number, echoed: ArrayBuffer | undefined): Uint8Array<ArrayBuffer> | null => {
  if (step.body === null) return null;
  if (echoed) return new Uint8Array(echoed);
  if (step.size !== undefined) return new Uint8Array(step.size).fill(120);
  return step.body === undefined ? new TextEncoder().encode(JSON.stringify({ scenario: script.id, run })) : fromBase64(step.body);
};

/** The answer of one run. */
const answerOf = async (step: Step, script: Script, scene: Scene, run: number, request: Request): Promise<Response> => {
  const { status = 201, headers = DEFAULT_HEADERS } = step;
  const init = { status, headers: headers.map(([name, value]): [string, string] => [name, value]) };
  if (step.stream) return new Response(streamOf(step.stream, scene.released), { ...init, headers: [...init.headers, [STREAM_HEADER, step.stream]] });
  return new Response(bodyOf(step, script, run, step.echo ? await request.arrayBuffer() : undefined), init);
};

/**
 * Makes the handler that a server under test mounts behind its dedup layer.
 *
 * @param ledger - where effects are counted @default in memory
 * @example
 * const scenarios = createScenarios();
 * serve(request => dedup.handle(request, scenarios.handler, { name: 'scenario' }));
 */
export const createScenarios = <Context extends RunContext = RunContext>(ledger: EffectLedger<Context> = memoryLedger()): Scenarios<Context> => {
  const scenes = new Map<string, Scene>();
  const sceneOf = (id: string): Scene => {
    const scene = scenes.get(id) ?? newScene();
    scenes.set(id, scene);
    return scene;
  };

  const affect = async (step: Step, script: Script, context: Context | undefined): Promise<void> => {
    const scene = sceneOf(script.id);
    try {
      if (step.announce) await context?.effectStarted?.();
    } catch {
      scene.forbidden += 1;
      return;
    }
    await ledger.add(script.id, context);
  };

  const run = async (script: Script, request: Request, context: Context | undefined): Promise<Response> => {
    const scene = sceneOf(script.id);
    const number = ++scene.runs;
    context?.signal?.addEventListener('abort', () => (scene.aborted += 1), { once: true });
    const step = script.steps[Math.min(number, script.steps.length) - 1] ?? {};
    const { effect = 'first' } = step;
    if (effect === 'first') await affect(step, script, context);
    if (step.hold) {
      scene.held += 1;
      await scene.released;
    }
    if (effect === 'last') await affect(step, script, context);
    if (step.throws === 'retryable') throw new RetryableError('Nothing has happened, as the script says.');
    if (step.throws) throw new TypeError('The handler fails, as its script says.');
    return answerOf(step, script, scene, number, request);
  };

  const report = async (id: string): Promise<ScenarioReport> => {
    const { runs, held, aborted, forbidden } = sceneOf(id);
    return { runs, held, aborted, forbidden, effects: await ledger.count(id) };
  };
  const release = async (id: string): Promise<void> => sceneOf(id).release();

  return {
    report,
    release,
    async handler(request, context) {
      const script = readScript(request.headers.get(SCRIPT_HEADER));
      const control = request.headers.get(CONTROL_HEADER);
      if (control === null) return run(script, request, context);
      if (control === 'release') await release(script.id);
      return Response.json(await report(script.id), { headers: { 'cache-control': 'no-store' } });
    },
  };
};

/**
 * A guard (a login, a limiter) to mount in front of the dedup layer: it turns away what the kit asks it to turn away.
 * Undefined: the request may pass.
 */
export const scenarioGuard = (request: Request): Response | undefined => {
  const status = request.headers.get(GUARD_HEADER);
  return status === null ? undefined : Response.json({ refusedBy: 'the guard' }, { status: Number(status) });
};
