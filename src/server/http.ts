import { checkCall } from './call-checks.js';
import { createEngine } from './engine.js';
import type { HandleOptions, Handler } from './handler.js';
import { checkPurgeOptions } from './option-kinds.js';
import { settingsOf, type DedupOptions, type KeyOwner } from './options.js';
import { handleRequest, recordScope, type Pipeline } from './pipeline.js';
import { startPurger, type Purger, type StartPurgeOptions } from './purger.js';
import type { PurgeOptions, PurgeReport } from './store.js';
import { resolutionOf, type Verdict } from './verdict.js';

export interface Dedup<Tx = unknown> {
  /**
   * Executes a request once per key and answers every repeat of it. The handler is not tied to the client: it runs to
   * its end when the client is gone, and its answer is stored. CORS and authorisation belong around this call, so that
   * they apply to replays too.
   *
   * It rejects only with what `scope`, reading the body, or an unprotected handler throws, and with a TypeError for what
   * it cannot work with; what a handler throws under a key becomes a 500.
   */
  handle(request: Request, handler: Handler<Response, Tx>, options: HandleOptions): Promise<Response>;
  handle(request: Request, handler: Handler<Response | undefined, Tx>, options: HandleOptions): Promise<Response | undefined>;
  /** Ends doubt about a key. False when there is none: never was, or somebody has ended it. Rejects with a TypeError for what is no owner or no verdict. */
  resolve(owner: KeyOwner, verdict: Verdict): Promise<boolean>;
  /** Keeps the table small; call it now and then, from wherever you run such work. Expiry does not depend on it. */
  purge(options?: PurgeOptions): Promise<PurgeReport>;
  /**
   * Purges now and every so often, batch by batch, until it is stopped. Several processes may do so at once.
   *
   * @example await using purger = dedup.startPurge({ every: 60_000 });
   */
  startPurge(options?: StartPurgeOptions): Purger;
  /** Resolves when no handler runs any more: call it before a process ends, after the server accepts no more requests. */
  idle(): Promise<void>;
}

const ensureOwner = (owner: unknown): void => {
  const { scope, name, key } = (owner ?? {}) as Partial<Record<keyof KeyOwner, unknown>>;
  if ([scope, name, key].every(part => typeof part === 'string' && part !== '')) return;
  throw new TypeError('resolve wants { scope, name, key }: what scope said, the name of the endpoint, and the key as the client sent it.');
};

/** Makes the dedup layer of an HTTP server, or of a mock of one. */
export const createDedup = <Tx = unknown>(options: DedupOptions<Tx>): Dedup<Tx> => {
  const settings = settingsOf(options);
  const { store } = settings;
  const engine = createEngine(settings);
  const pipeline: Pipeline<Tx> = { settings, engine };
  const handle = async (request: Request, handler: Handler<Response | undefined, Tx>, handleOptions: HandleOptions): Promise<Response | undefined> => {
    checkCall({ request, handler, options: handleOptions });
    return handleRequest(pipeline, request, handler, handleOptions);
  };
  return {
    handle: handle as Dedup<Tx>['handle'],
    async resolve(owner, verdict) {
      ensureOwner(owner);
      const { scope, name, key } = owner;
      return store.resolve({ scope: recordScope(settings, scope, name), key }, await resolutionOf(verdict, settings));
    },
    async purge(purgeOptions = {}) {
      checkPurgeOptions(purgeOptions);
      return store.purge(purgeOptions);
    },
    startPurge: purgeOptions => startPurger(batch => store.purge(batch), settings.clock, purgeOptions),
    idle: () => engine.idle(),
  };
};
