import type { Skip } from '../contract.js';
import type { ScenarioReport } from './scenario.js';

/** How a server is opened for a case, where it is not to be as it is by default. A target says which of these it knows. */
export interface ServerConfig {
  /** Whether a request without a key is refused. @default true */
  readonly required?: boolean;
  /** Whether keys are accepted in double quotes only. @default false */
  readonly strict?: boolean;
  /** ms that a duplicate waits for the run in progress. @default 0 */
  readonly wait?: number;
  /** What a key does that is older than its window. @default 'fresh' */
  readonly onExpired?: 'fresh' | 'refuse';
  /** ms for which the key is remembered, when the answer is to be forgotten earlier. @default as long as the answer */
  readonly keyRetention?: number;
  /** Bytes of a request that are accepted. */
  readonly maxRequestBytes?: number;
  /** What a second run of the handler would do after the first one's worker died. @default 'external' */
  readonly effects?: 'external' | 'marked' | 'idempotent';
  /** Whether keys count per endpoint; false: per tenant. @default true */
  readonly perEndpoint?: boolean;
  /** Runs unprotected when the records cannot be reached. @default false */
  readonly failOpen?: boolean;
  /** The provider whose dialect the server speaks. @default that of the IETF draft */
  readonly profile?: 'stripe' | 'gocardless' | 'azure' | 'paypal' | 'adyen';
  /** Asks the application, in dialects that repeat the latest state, what it is: 200, `{"state":"latest"}`. @default false */
  readonly latest?: boolean;
  /** Asks the application, before doubt is told to the client, what became of the first run: here, that nothing happened. */
  readonly recover?: 'not-applied';
  /** ms by which the clock of this server process is off. */
  readonly clockSkew?: number;
}

/** What can go wrong between a server process and its records. */
export type StoreFault =
  /** Nothing can be read or written. */
  | 'down'
  /** The next claim is written, but its acknowledgement gets lost. */
  | 'claim-lost'
  /** The next end of a run is not written. */
  | 'settle-refused'
  /** The next end of a run is written, but its acknowledgement gets lost. */
  | 'settle-lost'
  /** No end of a run can be written any more. */
  | 'settle-down';

/** What a target can do beside answering requests. A case that needs more is skipped, and its reason names this. */
export type Ability =
  | `config ${keyof ServerConfig}`
  | `store ${StoreFault}`
  /** {@link Subject.advance} */
  | 'time'
  /** {@link Subject.purge} */
  | 'purge'
  /** {@link Subject.fill} */
  | 'bulk'
  /** {@link Subject.resolve} */
  | 'resolve'
  /** {@link Subject.open} may be called again: another process on the same records. */
  | 'second server'
  /** {@link Server.crash} */
  | 'crash'
  /** {@link Server.cutOff} */
  | 'cut off'
  /** {@link Server.shutdown} */
  | 'shutdown'
  /** {@link Server.sendLines} */
  | 'header lines'
  /** {@link Server.loseAnswer} */
  | 'lose answer'
  /** The server takes its tenant from the header `scenario-tenant`. */
  | 'tenants'
  /** What comes first on the path (`/charges`, `/refunds`) is an endpoint with keys of its own. */
  | 'endpoints'
  /** `scenarioGuard` is mounted in front of the dedup layer. */
  | 'guard'
  /** Pages of other origins may call: {@link PAGE_ORIGIN} at least. */
  | 'cors'
  /** Handlers can announce that an effect may happen from now on. */
  | 'announce'
  /** Effects are in the transaction that records the answer. */
  | 'transactions'
  /** A run holds its key by a transaction: a process that dies frees it at once, without a lease. */
  | 'tx'
  /** Handlers see a signal that aborts when their key is lost. */
  | 'signal'
  /** Its words say by which header it marks replays. */
  | 'replay marker'
  /** Its words say that duplicates of a run in progress are refused. */
  | 'refuses duplicates'
  /** It is a mock, in the process of the test. */
  | 'mock';

/** The page that calls in the cases about CORS. */
export const PAGE_ORIGIN: string = 'https://page.example';

/**
 * How a server says what happened. What is documented counts as right in every case but those about the wording of
 * samekey's own server.
 */
export interface Words {
  /** Request header that carries the key. @default 'Idempotency-Key' */
  readonly header: string;
  /** Statuses of a refusal for want of a key. @default [400] */
  readonly missing: readonly number[];
  /** Of a refusal because the key cannot be one. @default [400] */
  readonly invalid: readonly number[];
  /** Of a refusal because the key belongs to another request. @default [422] */
  readonly reused: readonly number[];
  /** Of a refusal because the first request is still running. @default [409] */
  readonly inProgress: readonly number[];
  /** Of a refusal because nobody knows how the first request ended. @default [409] */
  readonly indeterminate: readonly number[];
  /** Of a refusal because the answer was not kept. @default [409, 410] */
  readonly gone: readonly number[];
  /** Of a refusal because the key is too old. @default [409, 412] */
  readonly expired: readonly number[];
  /** Of a refusal because the records cannot be reached. @default [503] */
  readonly unavailable: readonly number[];
  /** The header that marks a replay; null where none does. @default ['Idempotent-Replayed', 'true'] */
  readonly replayMarker: readonly [name: string, value: string] | null;
  /** What a duplicate of a run in progress gets: a refusal, or, after the run, its answer. @default 'refused' */
  readonly duplicates: 'refused' | 'wait';
}

/** The words that list statuses. */
export type StatusWord = { [Name in keyof Words]: Words[Name] extends readonly number[] ? Name : never }[keyof Words];

export const WORDS: Words = {
  header: 'Idempotency-Key',
  missing: [400],
  invalid: [400],
  reused: [422],
  inProgress: [409],
  indeterminate: [409],
  gone: [409, 410],
  expired: [409, 412],
  unavailable: [503],
  replayMarker: ['Idempotent-Replayed', 'true'],
  duplicates: 'refused',
};

/** A server process under test, with the scenario handler behind its dedup layer. */
export interface Server {
  /** Where its endpoints are, without a slash at the end: `${origin}/charges`. @default 'https://shop.example' */
  readonly origin?: string | undefined;
  fetch(request: Request): Promise<Response>;
  /** Kills the process: what it was doing ends, unfinished, and its requests get no answer. */
  crash?(): Promise<void> | void;
  /** The process can renew no lease from now on, though it goes on working. */
  cutOff?(): Promise<void> | void;
  /** Undoes {@link Server.cutOff}. */
  reconnect?(): Promise<void> | void;
  /** Ends it in order: resolves when nothing runs any more. */
  shutdown?(): Promise<void>;
  /** Lets something go wrong from now on. */
  fail?(fault: StoreFault): Promise<void> | void;
  /** The client does not get the next answer, though it is given: its `fetch` rejects. */
  loseAnswer?(): Promise<void> | void;
  /** How often handlers have run in all. */
  executions?(): Promise<number> | number;
  /** Sends a request with further header lines, as they are: repeated names too. Answers with the status. */
  sendLines?(request: Request, lines: readonly (readonly [name: string, value: string])[]): Promise<number>;
}

/** How an operator ends doubt: with what was found out. */
export type Verdict = 'applied' | 'not-applied' | { readonly answer: Response };

/** What a case works on: records of its own, and the processes that share them. */
export interface Subject {
  open(config: ServerConfig): Promise<Server> | Server;
  /**
   * What happened in a scenario, at all servers. Several servers that count effects in one place need it.
   * @default asked of each server's handler, through its `fetch`, and added up
   */
  report?(id: string): Promise<ScenarioReport>;
  /** Lets the runs of a scenario go on, at all servers. @default told to each server's handler, through its `fetch` */
  release?(id: string): Promise<void>;
  /** Lets `ms` pass: for leases, for expiry, and for whoever waits. */
  advance?(ms: number): Promise<void>;
  /** ms that may pass by themselves during a case, where leases and expiry follow a clock that nobody can stop. @default 0 */
  readonly drift?: number | undefined;
  /** Deletes what has expired, as much as one call does. */
  purge?(): Promise<{ readonly deleted: number; readonly more: boolean }>;
  /** Puts `count` records there that have expired. */
  fill?(count: number): Promise<void>;
  /** Ends doubt about a key, as an operator does, with an answer that was found out. False: there was no doubt. */
  resolve?(key: string, tenant: string, verdict: Verdict): Promise<boolean>;
  dispose?(): Promise<void> | void;
}

/** What is known of a target before it is started. */
export interface Traits {
  readonly name: string;
  /** Its own words, as documented. Facts about the words of samekey's own server are then not tried. @default those of samekey */
  readonly words?: Partial<Words> | undefined;
  readonly abilities?: readonly Ability[] | undefined;
  /** Why it cannot do something; otherwise the reason names the missing ability only. */
  readonly cannot?: { readonly [Name in Ability]?: string } | undefined;
  /** Facts that cannot hold for it, each with its reason. */
  readonly skip?: readonly Skip[] | undefined;
  /** ms that a run holds its key without a sign of life. @default 30_000 */
  readonly lease?: number | undefined;
  /** ms for which an answer is replayed. @default 86_400_000 */
  readonly retention?: number | undefined;
  /** More bytes than are stored of an answer. @default 1_048_577 */
  readonly oversize?: number | undefined;
  /**
   * Runs that it can hold at once, each under a key of its own: for the case about many keys. A server whose runs hold a
   * connection each has no more than its pool has.
   *
   * @default 8, because many pools have 10 connections
   */
  readonly atOnce?: number | undefined;
  /** Expired records for the case about purging. @default 2_500 */
  readonly bulk?: number | undefined;
  /** ms of real time after which a fact that is not settled has failed. @default 20_000 */
  readonly patience?: number | undefined;
}

/** A server to run the cases against: a running one, by its URL or `fetch`, or one that each case starts for itself. */
export type ConformanceTarget = Traits & (
  | { /** Where the scenario handler is mounted, without a slash at the end. */ readonly url: string }
  | { readonly fetch: (request: Request) => Promise<Response> }
  | { start(): Promise<Subject> | Subject }
);

/**
 * On a connection of its own. One that is kept may be that of a server which has since been started anew, and a request
 * that fails on it may have run, so that sending it again would count for two.
 */
const fetchAlone = (request: Request): Promise<Response> => {
  request.headers.set('connection', 'close');
  return fetch(request);
};

/** The subject of one case. A running server is shared by all cases: their keys are fresh. */
export const startTarget = (target: ConformanceTarget): Promise<Subject> | Subject => {
  if ('start' in target) return target.start();
  if ('url' in target) return { open: () => ({ origin: target.url, fetch: fetchAlone }) };
  return { open: () => ({ fetch: target.fetch }) };
};
