import type { FingerprintInput } from '../fingerprint.js';
import { frame } from '../key.js';
import { keyHeaderValue, type Profile } from '../profiles/profile.js';
import { outcomeOf, withHeaders } from './answer.js';
import { readRequestBody } from './bytes.js';
import { answerOf, ensureUnread } from './call-checks.js';
import { isContention } from './contention.js';
import { effectsTransaction } from './effects.js';
import type { Engine, EngineRequest } from './engine.js';
import { isRetryable } from './errors.js';
import { unprotected, type HandleOptions, type Handler } from './handler.js';
import { readKey } from './key-header.js';
import type { DedupSettings, KeyOwner } from './options.js';
import type { Effects, HeaderList } from './record.js';
import { marksOf, refusalOf, refusalResponse, type Mark, type Refusal } from './refusal.js';
import { replayFor } from './replay.js';
import { reportFailure, tell, type Call } from './reports.js';
import type { Decision, Outcome, Run } from './run.js';
import { readSentKey } from './sent-key.js';
import { resolutionOf } from './verdict.js';

/** What all steps of a request need. */
export interface Pipeline<Tx> {
  readonly settings: DedupSettings<Tx>;
  readonly engine: Engine<Tx>;
}

/** What a step needs that runs nothing. */
interface Reporting {
  readonly settings: Omit<DedupSettings, 'store'>;
}

type AnyHandler<Tx> = Handler<Response | undefined, Tx>;

/** Headers that a page may read across origins. */
const EXPOSED = 'Idempotent-Replayed, Idempotency-Status, Retry-After, Location, Stripe-Should-Retry, Transient-Error, Repeatability-Result';

const exposing = (request: Request): HeaderList => (request.headers.has('origin') ? [['Access-Control-Expose-Headers', EXPOSED]] : []);

/** The scope of the record: whose key it is and, as a rule, at which endpoint. */
export const recordScope = ({ perEndpoint }: Pick<DedupSettings, 'perEndpoint'>, scope: string, name: string): string => frame(perEndpoint ? [scope, name] : [scope]);

/** Where the dialect has it so, each answer says which key it is for. */
const echoing = ({ echoesKey, header, quoting }: Profile, key: string | undefined): HeaderList =>
  echoesKey && header !== undefined && key !== undefined ? [[header, keyHeaderValue(key, quoting)]] : [];

const marked = ({ settings: { profile } }: Reporting, request: Request, response: Response, { mark, key }: { readonly mark?: Mark; readonly key?: string | undefined }): Response =>
  withHeaders(response, [...(mark ? marksOf(profile, mark, response.status) : []), ...echoing(profile, key), ...exposing(request)]);

const refuse = async (pipeline: Reporting, request: Request, { scope, name, key }: Call, refusal: Refusal): Promise<Response> => {
  const { profile, on } = pipeline.settings;
  await tell(on, on.refused, { scope, name, key, refusal });
  return marked(pipeline, request, refusalResponse(profile, refusal), { key });
};

/** Runs a handler that no key protects. Its transaction, if it asks for one, ends as it would under a key. */
const bypass = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, name: string, mark?: Mark): Promise<Response | undefined> => {
  const { store, commitOnError } = pipeline.settings;
  const effects = effectsTransaction(store);
  let response: Response | undefined;
  try {
    response = answerOf(await handler(request, unprotected(name, () => effects.open())), name);
  } catch (error) {
    await effects.rollBack();
    throw error;
  }
  if (response && response.type !== 'error' && (response.status < 400 || commitOnError)) await effects.commit(async () => {});
  else await effects.rollBack();
  return response && mark ? marked(pipeline, request, response, { mark }) : response;
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
    const context = { ...owner, attempt, signal, effectStarted: () => run.effectStarted(), transaction: () => run.transaction() };
    const response = answerOf(await handler(request, context), owner.name);
    return response ? await outcomeOf(response, storing) : { kind: 'not-admitted', value: undefined };
  } catch (error) {
    // What the database gave up is run again, and no answer.
    if (profile.stores !== 'all' || isRetryable(error) || isContention(error)) throw error;
    reportFailure(pipeline.settings.on, error, owner);
    return outcomeOf(refusalResponse(profile, { code: 'handler_failed' }), storing);
  }
};

const respond = async (pipeline: Reporting, request: Request, owner: KeyOwner, decision: Decision<Response | undefined>): Promise<Response | undefined> => {
  const { settings } = pipeline;
  const { maxRetryAfter, on } = settings;
  const { key } = owner;
  const replay = decision.kind === 'replay' ? await replayFor(settings, owner, decision.answer) : undefined;
  if (replay) {
    await tell(on, on.replayed, { ...owner, status: replay.status });
    return marked(pipeline, request, replay, { mark: 'replayed', key });
  }
  const refusal = refusalOf(decision, maxRetryAfter);
  if (refusal) return refuse(pipeline, request, owner, refusal);
  if (decision.kind !== 'executed' || decision.value === undefined) return undefined;
  const { value, record } = decision;
  await tell(on, on.executed, { ...owner, status: value.status, record });
  return marked(pipeline, request, value, record === 'stored' || record === 'unrecorded' ? { mark: record, key } : { key });
};

/** In place of a fingerprint where bodies are not compared: equal to itself, and to no other algorithm's. */
const NOT_COMPARED = 'none:';

/** What a claim says beside whose key it is. */
interface Terms {
  readonly effects: Effects;
  /** ms since 1970, where the request tells when its key was made. */
  readonly madeAt: number | undefined;
}

/** Asks for no encoding in the client's place: bodies are stored plain, and encoded around the handler for each client. */
const askingForPlain = (request: Request): Request => {
  if (request.headers.has('accept-encoding')) request.headers.set('accept-encoding', 'identity');
  return request;
};

/** Asks the application what became of the first run, in the words in which an operator says it. */
const recoverOf = (settings: Reporting['settings'], owner: KeyOwner): EngineRequest['recover'] => {
  const { recover } = settings;
  return recover && (async operationRef => {
    const verdict = await recover({ ...owner, operationRef });
    return verdict && resolutionOf(verdict, settings);
  });
};

/** From the key on: the body is read, the engine decides, the handler gets a request of its own that no client can abort. */
const execute = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, owner: KeyOwner, { effects, madeAt }: Terms): Promise<Response | undefined> => {
  const { settings, engine } = pipeline;
  const { comparesBodies, identityHeaders } = settings.profile;
  const body = await readRequestBody(request, settings.maxRequestBytes);
  if (!body) return refuse(pipeline, request, owner, { code: 'idempotency_request_too_large' });
  const detached = (signal: AbortSignal | null): Request => new Request(request, { method: request.method, body, signal });
  const fingerprint = comparesBodies ? await settings.fingerprint(fingerprintInput(request, body, identityHeaders)) : NOT_COMPARED;
  const claim = { scope: recordScope(settings, owner.scope, owner.name), key: owner.key, fingerprint, effects, keyMadeAt: madeAt, recover: recoverOf(settings, owner) };
  let decision: Decision<Response | undefined>;
  try {
    decision = await engine.run(claim, run => work(pipeline, askingForPlain(detached(run.signal)), handler, owner, run));
  } catch (error) {
    reportFailure(pipeline.settings.on, error, owner);
    return refuse(pipeline, request, owner, { code: 'handler_failed' });
  }
  if (decision.kind === 'unavailable') reportFailure(settings.on, decision.cause, owner);
  if (decision.kind === 'unavailable' && !decision.isKnown && settings.failOpen) return bypass(pipeline, detached(null), handler, owner.name, 'unrecorded');
  return respond(pipeline, request, owner, decision);
};

/** Methods that change nothing, and may carry a key without harm. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** A request whose method needs no key here. */
const passThrough = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, name: string): Promise<Response | undefined> => {
  const { profile, strict } = pipeline.settings;
  if (readKey(profile, request.headers, strict).kind === 'missing') return bypass(pipeline, request, handler, name);
  const refused = profile.unsupported === 'refused' && !SAFE.has(request.method);
  return refused ? refuse(pipeline, request, { name, key: undefined }, { code: 'idempotency_unsupported' }) : bypass(pipeline, request, handler, name, 'ignored');
};

const noScope = (scope: unknown): TypeError =>
  new TypeError(`scope gave ${typeof scope === 'string' ? 'text with half of a surrogate pair' : `a value of type ${typeof scope}`}, but text was expected, which is a different one for each owner of keys. Give the id of the tenant or user as a string.`);

/** Whose keys they are. What is no text, or cannot be stored as it is, would make one owner of several. */
const scopeOf = async ({ scope }: Reporting['settings'], request: Request, name: string): Promise<string | undefined> => {
  const given: unknown = await scope(request, { name });
  if (given === undefined || given === null || given === '') return undefined;
  if (typeof given !== 'string' || /\p{Surrogate}/u.test(given)) throw noScope(given);
  return given;
};

/** One request, from its key to its answer. */
export const handleRequest = async <Tx>(pipeline: Pipeline<Tx>, request: Request, handler: AnyHandler<Tx>, { name, effects }: HandleOptions): Promise<Response | undefined> => {
  const { settings } = pipeline;
  if (!settings.methods.includes(request.method)) return passThrough(pipeline, request, handler, name);
  ensureUnread(request);
  const sent = await readSentKey(settings, request);
  const keyless = { name, key: undefined };
  if (sent.kind === 'too-large') return refuse(pipeline, request, keyless, { code: 'idempotency_request_too_large' });
  if (sent.kind === 'missing' && !settings.required) return bypass(pipeline, request, handler, name, 'none');
  if (sent.kind === 'missing') return refuse(pipeline, request, keyless, { code: 'idempotency_key_missing' });
  if (sent.kind === 'invalid') return refuse(pipeline, request, keyless, { code: 'idempotency_key_invalid', detail: sent.why });
  const { key, madeAt } = sent;
  const scope = await scopeOf(settings, request, name);
  if (!scope) return refuse(pipeline, request, { name, key }, { code: 'idempotency_scope_missing' });
  return execute(pipeline, request, handler, { scope, name, key }, { effects: effects ?? settings.effects, madeAt });
};
