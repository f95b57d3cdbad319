import type { ClaimResult, DedupRecord, Effects, StoredAnswer } from '../../../src/server/record.js';
import type { Body, Key } from './steps.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export const LEASE = HOUR;
/** ms that an answer is kept, and that its key is. */
export const RETENTION = 12 * HOUR;
export const KEY_RETENTION = 24 * HOUR;
export const DROP_DOUBT_AFTER = 30 * 24 * HOUR;

export interface Worker {
  readonly owner: string;
  readonly body: Body;
  readonly life: Life;
  fence: number;
  announced: boolean;
  acted: boolean;
  /** Nobody lets it begin an effect any more: its operator said that there was none. */
  stopped: boolean;
}

/** One life of a key: from its first run until it is forgotten. What is true of it is all that a client may rely on. */
export interface Life {
  readonly key: Key;
  /** Shown to clients, and the same for a whole life. */
  readonly ref: string;
  state: 'running' | 'answered' | 'released' | 'doubt';
  /** What its requests must say; undefined when any may. */
  body: Body | undefined;
  /** Who may speak for it. */
  holder: Worker | undefined;
  attempts: number;
  leaseUntil: number;
  /** When it is forgotten, if it has an end by then. */
  keyUntil: number;
  /** Since when nobody knows. */
  doubtSince: number;
  /** The first that counted. */
  answer: StoredAnswer | undefined;
  answerUntil: number;
  effects: number;
}

export const effectsOf = (key: Key): Effects => (key === 'marked elsewhere' ? 'marked' : key);

/** Forgotten: only what has a known end can be. */
export const isOver = (life: Life, now: number): boolean => (life.state === 'answered' || life.state === 'released') && life.keyUntil <= now;

const mayRunAgain = ({ key, holder }: Life): boolean => effectsOf(key) === 'idempotent' || (effectsOf(key) === 'marked' && !holder?.announced);

/** What a new worker is told. */
export const verdictOn = (life: Life | undefined, body: Body, now: number): ClaimResult['kind'] => {
  if (!life || isOver(life, now)) return 'won';
  if (life.body !== undefined && life.body !== body) return 'key-reused';
  if (life.state === 'released') return 'won';
  if (life.state === 'answered') return 'completed';
  if (life.state === 'doubt') return 'indeterminate';
  if (life.leaseUntil > now) return 'in-progress';
  return life.keyUntil > now && mayRunAgain(life) ? 'won' : 'indeterminate';
};

/** The answer as a repeat gets it now. */
export const replayOf = ({ answer, answerUntil }: Life, now: number): StoredAnswer | undefined =>
  answer && answerUntil <= now ? { status: answer.status, headers: [], body: null, omitted: 'expired' } : answer;

export const STATES: Readonly<Record<Life['state'], DedupRecord['state']>> = { running: 'in_progress', answered: 'completed', released: 'retryable', doubt: 'indeterminate' };
