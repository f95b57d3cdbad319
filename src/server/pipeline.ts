import type { FingerprintInput } from '../fingerprint.js';
import { frame } from '../key.js';
import { outcomeOf, replayOf, withHeaders } from './answer.js';
import { readRequestBody } from './bytes.js';
import { effectsTransaction } from './effects.js';
import type { Engine } from './engine.js';
import { isRetryable } from './errors.js';
import { unprotected, type HandleOptions, type Handler } from './handler.js';
import { readKey } from './key-header.js';
import type { DedupSettings, KeyOwner } from './options.js';
import type { Effects, HeaderList } from './record.js';
import { marksOf, refusalOf, refusalResponse, type Mark, type Refusal } from './refusal.js';
import type { Decision, Outcome, Run } from './run.js';

/** What all steps of a request need. */
export interface Pipeline<Tx> {
  readonly settings: DedupSettings<Tx>;
  readonly engine: Engine<Tx>;
}

/** What a step needs that runs nothing. */
interface Reporting {
  readonly settings: Omit<DedupSettings, 'store'>;
}

interface Call {
  readonly name: string;
  readonly key: string | undefined;
}

type AnyHandler<Tx> = Handler<Response | undefined, Tx>;

/** Headers that a page may read across origins. */
const EXPOSED = 'Idempotent-Replayed, Idempotency-Status, Retry-After, Location, Stripe-Should-Retry';

const exposing = (request: Request): HeaderList => (request.headers.has('origin') ? [['Access-Control-Expose-Headers', EXPOSED]] : []);

/** The scope of the record: whose key it is and, as a rule, at which endpoint. */
export const recordScope = ({ perEndpoint }: Pick<DedupSettings, 'perEndpoint'>, scope: string, name: string): string => frame(perEndpoint ? [scope, name] : [scope]);

// Observers never change what a client gets.
const fail = ({ settings }: Reporting, error: unknown, call: Call): void => {
  try {
    settings.on.failed?.(error, call);
  } catch {}
};

const tell = async <E extends Call>(pipeline: Reporting, listener: ((event: E) => void | Promise<void>) | undefined, event: E): Promise<void> => {
  try {
    await listener?.(event);
  } catch (error) {
    fail(pipeline, error, event);
  }
};

const marked = ({ settings }: Reporting, request: Request, response: Response, mark: Mark): Response =>
  withHeaders(response, [...marksOf(settings.profile, mark, response.status), ...exposing(request)]);

const refuse = async (pipeline: Reporting, request: Request, { name, key }: Call, refusal: Refusal): Promise<Response> => {
  const { profile, on } = pipeline.settings;
  await tell(pipeline, on.refused, { name, key, refusal });
  return withHeaders(refusalResponse(profile, refusal), exposing(request));
};

/** Runs a handler that no key protects. Its transaction, if it asks for one, ends as it would under a key. */
const bypass = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, name: string, mark?: Mark): Promise<Response | undefined> => {
  const { store, commitOnError } = pipeline.settings;
  const effects = effectsTransaction(store);
  let response: Response | undefined;
  try {
    response = await handler(request, unprotected(name, () => effects.open()));
  } catch (error) {
    await effects.rollBack();
    throw error;
  }
  if (response && response.type !== 'error' && (response.status < 400 || commitOnError)) await effects.commit(async () => {});
  else await effects.rollBack();
  return response && mark ? marked(pipeline, request, response, mark) : response;
};

const fingerprintInput = (request: Request, body: Uint8Array<ArrayBuffer>, identityHeaders: readonly string[]): FingerprintInput => {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    target: pathname,
    query: search.slice(1),
    contentType: request.headers.get('content-type') ?? undefined,
    body,
    identity: identityHeaders.map(name => request.headers.get(name) ?? ''),
  };
};

/** Runs the handler and says what its answer means for the key. */
const work = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, owner: KeyOwner, run: Run<Tx>): Promise<Outcome<Response | undefined>> => {
  const { profile, maxAnswerBytes, mayStore } = pipeline.settings;
  const storing = { stores: profile.stores, maxAnswerBytes, mayStore };
  const { signal, attempt } = run;
  try {
    const response = await handler(request, { ...owner, attempt, signal, effectStarted: () => run.effectStarted(), transaction: () => run.transaction() });
    return response ? await outcomeOf(response, storing) : { kind: 'not-admitted', value: undefined };
  } catch (error) {
    if (profile.stores !== 'all' || isRetryable(error)) throw error;
    fail(pipeline, error, owner);
    return outcomeOf(refusalResponse(profile, { code: 'handler_failed' }), storing);
  }
};

const respond = async (pipeline: Reporting, request: Request, owner: KeyOwner, decision: Decision<Response | undefined>): Promise<Response | undefined> => {
  const { maxRetryAfter, on } = pipeline.settings;
  const refusal = refusalOf(decision, maxRetryAfter);
  if (refusal) return refuse(pipeline, request, owner, refusal);
  if (decision.kind === 'replay') {
    await tell(pipeline, on.replayed, { ...owner, status: decision.answer.status });
    return marked(pipeline, request, replayOf(decision.answer), 'replayed');
  }
  if (decision.kind !== 'executed' || decision.value === undefined) return undefined;
  const { value, record } = decision;
  await tell(pipeline, on.executed, { ...owner, status: value.status, record });
  return record === 'stored' || record === 'unrecorded' ? marked(pipeline, request, value, record) : value;
};

/** From the key on: the body is read, the engine decides, the handler gets a request of its own that no client can abort. */
const execute = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, owner: KeyOwner, effects: Effects): Promise<Response | undefined> => {
  const { settings, engine } = pipeline;
  const body = await readRequestBody(request, settings.maxRequestBytes);
  if (!body) return refuse(pipeline, request, owner, { code: 'idempotency_request_too_large' });
  const detached = (signal: AbortSignal | null): Request => new Request(request, { method: request.method, body, signal });
  const fingerprint = await settings.fingerprint(fingerprintInput(request, body, settings.profile.identityHeaders));
  const claim = { scope: recordScope(settings, owner.scope, owner.name), key: owner.key, fingerprint, effects };
  let decision: Decision<Response | undefined>;
  try {
    decision = await engine.run(claim, run => work(pipeline, detached(run.signal), handler, owner, run));
  } catch (error) {
    fail(pipeline, error, owner);
    return refuse(pipeline, request, owner, { code: 'handler_failed' });
  }
  if (decision.kind === 'unavailable' && settings.failOpen) return bypass(pipeline, detached(null), handler, owner.name, 'unrecorded');
  return respond(pipeline, request, owner, decision);
};

/** One request, from its key header to its answer. */
export const handleRequest = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, { name, effects }: HandleOptions): Promise<Response | undefined> => {
  const { settings } = pipeline;
  const sent = readKey(settings.profile, request.headers, settings.strict);
  const keyless = { name, key: undefined };
  if (!settings.methods.includes(request.method)) return bypass(pipeline, request, handler, name, sent.kind === 'missing' ? undefined : 'ignored');
  if (sent.kind === 'missing' && !settings.required) return bypass(pipeline, request, handler, name, 'none');
  if (sent.kind === 'missing') return refuse(pipeline, request, keyless, { code: 'idempotency_key_missing' });
  if (sent.kind === 'invalid') return refuse(pipeline, request, keyless, { code: 'idempotency_key_invalid', detail: sent.why });
  const scope = await settings.scope(request, { name });
  if (!scope) return refuse(pipeline, request, { name, key: sent.key }, { code: 'idempotency_scope_missing' });
  return execute(pipeline, request, handler, { scope, name, key: sent.key }, effects ?? settings.effects);
};
