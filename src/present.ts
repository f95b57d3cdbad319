import type { ReceivedAnswer } from './answer.js';
import { toResponse } from './answer.js';
import { AnswerOmittedError, InDoubtError, KeyReusedError, OperationPendingError, RedirectedError, SamekeyError, type OperationInfo } from './errors.js';
import { infoOf } from './events.js';
import type { CallResult } from './flights.js';
import type { Head } from './operation.js';

/** What is known of Responses that were given out, and of ky's calls. */
export const infos: WeakMap<object, OperationInfo | (() => OperationInfo | undefined)> = new WeakMap();

/** How a caller wants to learn that an operation is still pending: as an error, or as the last Response, as `fetch` would give it. */
export type Manner = 'throw' | 'respond';

const tag = (response: Response, operation: OperationInfo): Response => {
  infos.set(response, operation);
  return response;
};

const titleOf = (head: Head): string => (head.name === undefined ? `The operation with key ${head.key}` : `Operation "${head.name}"`);

const responseOf = (answer: ReceivedAnswer | undefined, operation: OperationInfo): Response | undefined =>
  answer && answer.meta.status > 0 ? tag(toResponse(answer, answer.headers), operation) : undefined;

/** An error and the code at the bottom of it: Node hides the reason of "fetch failed" two causes deep. */
const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return JSON.stringify(error);
  const { cause, code } = error as { cause?: unknown; code?: unknown };
  const deeper = cause instanceof Error ? `, ${messageOf(cause)}` : '';
  return `${error.name}: ${error.message}${typeof code === 'string' && !error.message.includes(code) ? ` ${code}` : ''}${deeper}`;
};

/** What happened last, in words. */
const lastOf = (head: Head, answer: ReceivedAnswer | undefined, error: unknown): string => {
  if (answer) return `the last answer was ${answer.meta.status}`;
  if (error !== undefined) return `the last attempt had no answer (${messageOf(error)})`;
  return head.firstSentAt === undefined ? 'nothing was sent' : 'it may have been sent, and no answer is known';
};

/** A page cannot see why the browser let nothing through; the commonest reason is that the server was not asked to. */
const corsHint = (head: Head, error: unknown): string =>
  globalThis.document && error instanceof TypeError && head.snapshot && new URL(head.snapshot.url).origin !== globalThis.location.origin
    ? ' If the server never sees the request, its CORS headers may not allow the key: Access-Control-Allow-Headers must name it.'
    : '';

const pendingError = ({ head, answer, error, reason }: Extract<CallResult, { kind: 'pending' }>, durable = true): SamekeyError => {
  const operation = infoOf(head, { durable });
  if (head.parked === 'redirected') {
    const location = answer?.headers.get('location') ?? undefined;
    const exits = 'Call the final URL, or pass redirect: "follow" together with `accept`';
    return new RedirectedError(`${titleOf(head)} was redirected${location ? ` to ${location}` : ''} (status ${answer?.meta.status ?? 0}), which a keyed request does not follow. ${exits}.`, { operation, location });
  }
  const next = head.nextAttemptAt === undefined ? '' : ` The next attempt is due at ${new Date(head.nextAttemptAt).toISOString()}.`;
  const fate =
    head.state === 'cancelled'
      ? 'It had no effect and is cancelled: call again when you like.'
      : `It is kept under its key${head.parked ? `, parked (${head.parked})` : ''}.${next} Call it again by its name or call operations.resume() to go on; a new operation could repeat the effect.`;
  return new OperationPendingError(`${titleOf(head)} has no final answer yet (${reason}): ${lastOf(head, answer, error)}.${corsHint(head, error)} ${fate}`, {
    operation,
    nextAttemptAt: head.nextAttemptAt,
    response: responseOf(answer, operation),
    cause: error,
  });
};

const WHY: Readonly<Record<string, string>> = {
  'key-window': 'the server may have forgotten the key, so that a resend could be a second effect',
  refusal: 'it was refused after an attempt whose answer was lost, and nothing says that the refusal is stored under the key; if your server stores its refusals, declare `storedRefusals` or send `Idempotency-Status: stored`',
  'stored-error': 'the server has stored an error under the key and will only repeat it',
  'told-not-to-retry': 'the server failed and asked not to be asked again',
};

const doubtError = (head: Head, answer?: ReceivedAnswer, cause?: unknown): SamekeyError => {
  const operation = infoOf(head);
  const options = { operation, response: responseOf(answer, operation), cause };
  if (head.reason === 'key-reused') {
    return new KeyReusedError(`The server says that key ${head.key} was first used for another request. ${titleOf(head)} is in doubt; nothing more is sent. Find out what the key stands for, then call operations.reconcile. If it was refused before, and your server stores refusals under the key, declare \`storedRefusals\`: a corrected request then gets a new key.`, options);
  }
  return new InDoubtError(`${titleOf(head)} is in doubt: ${WHY[head.reason ?? ''] ?? head.reason ?? 'its outcome is not known'}. It is not resent. Ask the server, then call operations.reconcile, or pass onInDoubt.`, options);
};

/** What a record that nobody drives tells a caller. */
const recorded = (head: Head): Response => {
  const operation = infoOf(head, { replayed: 'keystore' });
  const { answer } = head;
  if (head.state === 'in_doubt') throw doubtError(head);
  if (head.state === 'cancelled') throw new SamekeyError('CANCELLED', `${titleOf(head)} was cancelled before it had an effect. Call it again to begin anew.`, { operation });
  if (head.state === 'pending') throw pendingError({ kind: 'pending', head, reason: head.parked ?? 'pending' });
  if (!answer || answer.omitted) {
    const options = { operation, state: head.state, status: answer?.status, headers: new Headers((answer?.headers ?? []) as [string, string][]) };
    throw new AnswerOmittedError(`${titleOf(head)} is settled (${head.state}${answer?.status ? `, status ${answer.status}` : ''}), but its answer is not kept (${answer?.omitted ?? 'expired'}). Ask the server for the resource.`, options);
  }
  return tag(toResponse({ meta: answer, body: head.response }), operation);
};

/** Gives a caller what came of its call: a Response of its own, or an error of its own. */
export const present = (result: CallResult, manner: Manner, stored = true): Response => {
  switch (result.kind) {
    case 'answered': {
      const { head, answer, replayed, durable } = result;
      if (head.answer?.omitted === 'unavailable') return recorded(head);
      return tag(toResponse(answer, answer.headers), infoOf(head, { replayed: replayed && 'server', durable: durable && stored }));
    }
    case 'pending': {
      const error = pendingError(result, stored);
      const response = manner === 'respond' && !(error instanceof RedirectedError) ? responseOf(result.answer, infoOf(result.head, { durable: stored })) : undefined;
      if (!response) throw error;
      // Other people's SDKs hide errors and show headers.
      response.headers.set('samekey-state', result.head.state);
      return response;
    }
    case 'in-doubt':
      throw doubtError(result.head, result.answer, result.error);
    case 'volatile':
      return present(result.result, manner, false);
    case 'failed':
      throw result.error;
    case 'spent':
    case 'lost':
    case 'stored':
      if (!result.head) throw new SamekeyError('CANCELLED', 'The operation was forgotten while it was under way. Nothing more is known of it here.', { phase: 'unknown' });
      return recorded(result.head);
  }
};
