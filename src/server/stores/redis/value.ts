import { Buffer } from 'node:buffer';
import type { DedupRecord, StoredAnswer } from '../../record.js';

/** A row as Redis keeps it: the head in its first line, the rest after it. See `scripts.ts` for why. */
export interface Value {
  readonly head: string;
  /** Three lines: the facts, the answer, its body. */
  readonly rest: string;
}

/** ms. What Redis counts as never: cjson writes 14 digits at most, and PX takes no infinity. The year 4821. */
const LATEST_MS = 9e13;

/** A time or a duration as the scripts take it: whole ms, never less than what was asked for. */
export const wholeMs = (ms: number): number => Math.min(Math.ceil(ms), LATEST_MS);

const headOf = ({ state, owner, fence, attempts, effectStarted, ...times }: DedupRecord): object => ({
  state,
  owner,
  fence,
  attempts,
  effectStarted,
  leaseUntil: wholeMs(times.leaseUntil),
  firstSeenAt: times.firstSeenAt,
  settledAt: times.settledAt,
  resultExpiresAt: times.resultExpiresAt === undefined ? undefined : wholeMs(times.resultExpiresAt),
  keyExpiresAt: wholeMs(times.keyExpiresAt),
});

const factsOf = ({ scope, key, fingerprint, operationRef, reason }: DedupRecord): object => ({ scope, key, fingerprint, operationRef, reason });

/** The last two lines. The body has one of its own, so that a purge can do without it. */
export const encodeAnswer = (answer: StoredAnswer | undefined): string => {
  if (!answer) return '\n';
  const { body, ...rest } = answer;
  return `${JSON.stringify({ ...rest, bytes: body?.length ?? null })}\n${body ? Buffer.from(body).toString('base64') : ''}`;
};

export const encode = (row: DedupRecord): Value => ({
  head: JSON.stringify(headOf(row)),
  rest: `${JSON.stringify(factsOf(row))}\n${encodeAnswer(row.answer)}`,
});

export const asText = ({ head, rest }: Value): string => `${head}\n${rest}`;

/** The first line of a value; '' when there is no value. */
export const headLine = (text: string): string => text.slice(0, Math.max(0, text.indexOf('\n')));

const decodeAnswer = (line: string, base64: string): StoredAnswer => {
  const { bytes, ...answer } = JSON.parse(line) as Omit<StoredAnswer, 'body'> & { readonly bytes: number | null };
  return { ...answer, body: bytes === null ? null : new Uint8Array(Buffer.from(base64, 'base64')) };
};

/**
 * Reads what `encode` wrote; a body that was left out is read as an empty one.
 *
 * @throws Error when it is something else
 */
export const decode = (name: string, text: string): DedupRecord => {
  const [head = '', facts = '', answer = '', body = ''] = text.split('\n');
  try {
    const row = { ...(JSON.parse(head) as object), ...(JSON.parse(facts) as object) } as DedupRecord;
    return answer === '' ? row : { ...row, answer: decodeAnswer(answer, body) };
  } catch (cause) {
    throw new Error(`The Redis key "${name}" holds no dedup record. Does another program use it? Give redisDedupStore a prefix of its own.`, { cause });
  }
};
