import type { HeaderList, StoredAnswer } from '../record.js';
import { WORDINGS, type RefusalCode } from './wordings.js';

/** Why a request is neither executed nor answered from the store. */
export interface Refusal {
  readonly code: RefusalCode;
  /** Said before the standing detail. */
  readonly detail?: string | undefined;
  /** ms */
  readonly retryAfter?: number | undefined;
  readonly safeNewKey?: boolean | undefined;
  readonly originalStatus?: number | undefined;
  readonly operationRef?: string | undefined;
}

/** What is said of an answer that is not a refusal. */
export type Mark = 'stored' | 'unrecorded' | 'replayed' | 'none' | 'ignored';

/** How a dialect says these things. */
export interface Style {
  refuse(refusal: Refusal): Response;
  /** The headers by which an answer of this status says what it is. */
  mark(mark: Mark, status: number): HeaderList;
  /** What a repeat gets where the dialect never gives the first answer again; undefined for an answer that names nothing. */
  conflict?(answer: StoredAnswer): Response | undefined;
}

/** A status and a code of the provider's own, where it has them for a refusal. */
export type Words<Code> = Partial<Readonly<Record<RefusalCode, readonly [status: number, code: Code]>>>;

/** The standing words, and before them what is particular to this refusal. */
export const detailOf = ({ code, detail }: Refusal): string => [detail, WORDINGS[code].detail].filter(Boolean).join(' ');

/** Where `original_status` goes in bodies that have no place for it: clients of ours look for it at the top. */
export const originalOf = ({ originalStatus }: Refusal): object => (originalStatus === undefined ? {} : { original_status: originalStatus });

export interface Answer {
  readonly status: number;
  readonly body: object;
  /** @default 'application/json' */
  readonly type?: string;
  readonly headers?: HeaderList;
}

const retryAfterOf = ({ retryAfter }: Refusal): HeaderList => (retryAfter === undefined ? [] : [['Retry-After', String(Math.ceil(retryAfter / 1000))]]);

/** The response to a refusal. Caches must not keep it. */
export const refuseWith = (refusal: Refusal, { status, body, type = 'application/json', headers = [] }: Answer): Response => {
  const all: HeaderList = [['Content-Type', type], ['Cache-Control', 'no-store'], ...headers, ...retryAfterOf(refusal)];
  return new Response(JSON.stringify(body), { status, headers: all.map(([name, value]): [string, string] => [name, value]) });
};
