import { sql, type Statement } from '../../../sql/statement.js';
import type { SqlResult } from '../../../sql/database.js';
import { asBytes, asNumber } from '../../../sql/values.js';
import { NO_LEASE, type BodyOmission, type DedupRecord, type HeaderList, type RecordState, type Settlement, type StoredAnswer } from '../../record.js';
import type { Assignments } from './dialect.js';

/** How a time of a record becomes the value of a column: a moment, or so many ms from now. */
export type WriteTime = (ms: number) => Statement;

const NULL = sql`NULL`;

const timeOrNull = (time: WriteTime, ms: number | undefined): Statement => (ms === undefined ? NULL : time(ms));

const answerColumns = (answer: StoredAnswer | undefined): Assignments => ({
  response_code: sql`${answer?.status}`,
  response_headers: sql`${answer && JSON.stringify(answer.headers)}`,
  response_body: sql`${answer?.body}`,
  body_omitted: sql`${answer?.omitted}`,
});

/** All columns of a record but its revision. */
export const columnsOf = (record: DedupRecord, time: WriteTime): Assignments => ({
  scope: sql`${record.scope}`,
  id_key: sql`${record.key}`,
  request_hash: sql`${record.fingerprint}`,
  status: sql`${record.state}`,
  ...answerColumns(record.answer),
  owner: sql`${record.owner}`,
  fence: sql`${record.fence}`,
  attempts: sql`${record.attempts}`,
  lease_until: time(record.leaseUntil),
  effect_started: sql`${record.effectStarted}`,
  operation_ref: sql`${record.operationRef}`,
  reason: sql`${record.reason}`,
  created_at: time(record.firstSeenAt),
  settled_at: timeOrNull(time, record.settledAt),
  result_expires_at: timeOrNull(time, record.resultExpiresAt),
  expires_at: time(record.keyExpiresAt),
});

/** The columns by which a run makes a row its own that nobody has had yet. */
export const heldColumns = ({ owner, fence, attempts }: DedupRecord): Assignments => ({ owner: sql`${owner}`, fence: sql`${fence}`, attempts: sql`${attempts}` });

/** The columns that a settlement changes in a row in progress; the same change as `settleRecord`'s. */
export const settledColumns = (settlement: Settlement, later: WriteTime): Assignments => {
  const settled = { status: sql`${settlement.to}`, settled_at: later(0) };
  if (settlement.to === 'indeterminate') return { ...settled, reason: sql`${settlement.reason}` };
  const kept = { ...settled, expires_at: later(settlement.keyRetention), reason: NULL };
  if (settlement.to === 'retryable') return settlement.keepFingerprint ? kept : { ...kept, request_hash: NULL };
  return { ...kept, ...answerColumns(settlement.answer), result_expires_at: later(settlement.retention) };
};

type Cells = SqlResult['rows'][number];

const text = (cell: unknown): string => (cell instanceof Uint8Array ? new TextDecoder().decode(cell) : String(cell));

const optional = <T>(cell: unknown, read: (cell: unknown) => T): T | undefined => (cell === null || cell === undefined ? undefined : read(cell));

/** `{ name: value }`, or nothing where there is no value, because records have no members that are undefined. */
const member = <Name extends string, T>(name: Name, value: T | undefined): { readonly [N in Name]?: T } =>
  (value === undefined ? {} : { [name]: value }) as { readonly [N in Name]?: T };

const truth = (cell: unknown): boolean => cell === true || (cell !== false && asNumber(cell) === 1);

const answerOf = (cells: Cells): StoredAnswer | undefined => {
  const status = optional(cells['response_code'], asNumber);
  if (status === undefined) return undefined;
  const omitted = optional(cells['body_omitted'], text) as BodyOmission | undefined;
  const headers = JSON.parse(optional(cells['response_headers'], text) ?? '[]') as HeaderList;
  return { status, headers, body: optional(cells['response_body'], asBytes) ?? null, ...member('omitted', omitted) };
};

/**
 * What a row is where a run that is not in it has announced an effect elsewhere: its transaction still goes on or was
 * rolled back, and the row tells of an earlier run. Whose request it was, nobody knows.
 */
const announcedIn = (record: DedupRecord): DedupRecord => {
  if (record.state === 'in_progress' || record.state === 'indeterminate') return { ...record, effectStarted: true };
  const { fingerprint: _fingerprint, answer: _answer, settledAt: _settledAt, resultExpiresAt: _resultExpiresAt, ...rest } = record;
  return { ...rest, state: 'in_progress', leaseUntil: NO_LEASE, effectStarted: true };
};

/** The record in a row of the store's SELECT. */
export const recordOf = (cells: Cells): DedupRecord => {
  const fence = asNumber(cells['fence']);
  const record: DedupRecord = {
    scope: text(cells['scope']),
    key: text(cells['id_key']),
    state: text(cells['status']) as RecordState,
    ...member('fingerprint', optional(cells['request_hash'], text)),
    owner: text(cells['owner']),
    fence,
    attempts: asNumber(cells['attempts']),
    leaseUntil: asNumber(cells['lease_until']),
    effectStarted: truth(cells['effect_started']),
    operationRef: text(cells['operation_ref']),
    firstSeenAt: asNumber(cells['created_at']),
    ...member('settledAt', optional(cells['settled_at'], asNumber)),
    ...member('answer', answerOf(cells)),
    ...member('resultExpiresAt', optional(cells['result_expires_at'], asNumber)),
    keyExpiresAt: asNumber(cells['expires_at']),
    ...member('reason', optional(cells['reason'], text)),
  };
  const announced = optional(cells['effect_fence'], asNumber) ?? 0;
  return announced > fence ? announcedIn(record) : record;
};
