import type { OperationRecord } from 'samekey';
import type { LedgerEntry } from 'samekey/msw';
import type { PageEvent } from './page-log.js';

/** How a step is shown: sent, good, lost, repeated, or by a person. */
export type Tone = 'person' | 'sent' | 'charged' | 'lost' | 'wait' | 'replay' | 'settled' | 'doubt';

export interface Step {
  readonly at: number;
  readonly tone: Tone;
  readonly text: string;
}

const FAULTS: Readonly<Record<string, string | undefined>> = {
  'lose-request': 'The request is lost on the way',
  'lose-response': 'The answer is lost on the way',
  status: 'A gateway answers 503 instead',
};

/** Two faults hit before the server does anything; the others hit its answer. */
const isEarly = (fault: string): boolean => fault === 'lose-request' || fault === 'status';

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;

/** @param wait - ms since the request before was over; undefined for the first one */
const serverStep = (entry: LedgerEntry, wait: number | undefined): Step | undefined => {
  const { at } = entry;
  switch (entry.kind) {
    case 'request':
      return { at, tone: 'sent', text: wait === undefined ? 'Request sent' : `Sent again after ${seconds(wait)}: same key, same bytes` };
    case 'execution':
      return { at, tone: 'charged', text: 'The server charges the card' };
    case 'replay':
      return { at, tone: 'replay', text: 'The server knows the key and repeats its answer' };
    case 'conflict':
      return { at, tone: 'wait', text: 'The server is still at work on this key' };
    default:
      return undefined;
  }
};

/** One request with what came of it. */
const stepsOfRequest = (entries: readonly LedgerEntry[], wait: number | undefined): Step[] => {
  const steps = entries.flatMap(entry => serverStep(entry, wait) ?? []);
  const fault = entries.find(entry => entry.kind === 'fault')?.fault ?? '';
  const text = FAULTS[fault];
  const last = entries.at(-1);
  if (text === undefined || !last) return steps;
  const at = isEarly(fault) ? (entries[0]?.at ?? last.at) : last.at;
  return [...steps, { at, tone: 'lost', text }];
};

const SETTLED: { readonly [S in OperationRecord['state']]?: Omit<Step, 'at'> } = {
  succeeded: { tone: 'settled', text: 'The shop knows: paid' },
  rejected: { tone: 'doubt', text: 'The server refused' },
  in_doubt: { tone: 'doubt', text: 'In doubt: nobody can tell, so nothing is sent any more' },
  cancelled: { tone: 'doubt', text: 'Cancelled' },
};

const settledStep = ({ state, settledAt, lastSentAt, createdAt }: OperationRecord): Step[] => {
  const step = SETTLED[state];
  return step ? [{ at: settledAt ?? lastSentAt ?? createdAt, ...step }] : [];
};

const personSteps = (record: OperationRecord, log: readonly PageEvent[], order: number): Step[] => {
  const until = record.settledAt ?? Infinity;
  return log.flatMap(({ at, kind, order: on }): Step[] => {
    if (on !== order || at > until) return [];
    if (kind === 'clicked') return [{ at, tone: 'person', text: 'Pay is clicked' }];
    return at > record.createdAt ? [{ at, tone: 'person', text: 'The page is opened again' }] : [];
  });
};

/** Everything that happened to an operation, in order: what people did, what the server saw, what the shop knows. */
export const stepsOf = (record: OperationRecord, ledger: readonly LedgerEntry[], log: readonly PageEvent[], order: number): Step[] => {
  const own = ledger.filter(({ key }) => key === record.key);
  const ids = [...new Set(own.map(({ request }) => request))];
  const requests = ids.map(id => own.filter(({ request }) => request === id));
  const sends = requests.flatMap((entries, index) => {
    const before = requests[index - 1]?.at(-1)?.at;
    return stepsOfRequest(entries, before === undefined ? undefined : (entries[0]?.at ?? before) - before);
  });
  return [...personSteps(record, log, order), ...sends, ...settledStep(record)].sort((a, b) => a.at - b.at);
};

export interface Counts {
  readonly orders: number;
  readonly keys: number;
  readonly charges: number;
}

export const countsOf = (records: readonly OperationRecord[], ledger: readonly LedgerEntry[]): Counts => ({
  orders: records.length,
  keys: new Set(ledger.flatMap(({ key }) => key ?? [])).size,
  charges: ledger.filter(({ kind }) => kind === 'execution').length,
});
