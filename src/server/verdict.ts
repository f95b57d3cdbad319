import { storableHeaders } from './answer.js';
import type { DedupSettings } from './options.js';
import type { Resolution, StoredAnswer } from './record.js';

/** How doubt ends. `answer` is what a repeat gets; with `'applied'` it gets 409, and that the request was executed. */
export type Verdict = 'not-applied' | 'applied' | { readonly answer: Response };

const storedFor = async (verdict: Exclude<Verdict, 'not-applied'>, mayStore: (name: string) => boolean): Promise<StoredAnswer> => {
  if (verdict === 'applied') return { status: 200, headers: [], body: null, omitted: 'resolved' };
  const { answer } = verdict;
  return { status: answer.status, headers: storableHeaders(answer.headers, mayStore), body: answer.body && new Uint8Array(await answer.arrayBuffer()) };
};

const isVerdict = (value: unknown): value is Verdict =>
  value === 'applied' || value === 'not-applied' || (value as { answer?: unknown } | null | undefined)?.answer instanceof Response;

/**
 * What a verdict makes of a record.
 *
 * @throws TypeError for what is no verdict
 */
export const resolutionOf = async (verdict: Verdict, { retention, keyRetention, mayStore }: Pick<DedupSettings, 'retention' | 'keyRetention' | 'mayStore'>): Promise<Resolution> => {
  if (!isVerdict(verdict)) throw new TypeError(`${JSON.stringify(verdict) ?? String(verdict)} is no verdict. Say 'not-applied', 'applied', or { answer: a Response } that repeats are to get.`);
  return verdict === 'not-applied' ? { to: 'retryable', keyRetention } : { to: 'completed', answer: await storedFor(verdict, mayStore), retention, keyRetention };
};
