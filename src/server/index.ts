export { createDedup, type Dedup } from './http.js';
export type { Verdict } from './verdict.js';
export type { HandleOptions, Handler, HandlerContext } from './handler.js';
export type { DedupEvents, DedupOptions, KeyOwner, Refused } from './options.js';
export { createEngine, type Engine, type EngineRequest } from './engine.js';
export type { Decision, EngineOptions, Outcome, RecordedAs, Run, Work } from './run.js';
export type { Purger, StartPurgeOptions } from './purger.js';
export { fingerprint, type FingerprintInput } from '../fingerprint.js';
export { hmacFingerprint } from './hmac-fingerprint.js';
export { withCors, type CorsOptions } from './cors.js';
export { LeaseLostError, NoTransactionError, RetryableError } from './errors.js';
export type { Refusal, RefusalCode } from './refusal.js';
export { claimRecord, renewRecord, resolveRecord, settleRecord, tidyRecord } from './record.js';
export type {
  BodyOmission, Change, Claim, ClaimResult, DedupRecord, Effects, HeaderList, Hold, RecordRef, RecordState, Resolution, Settlement, StoredAnswer, Tidied,
} from './record.js';
export type { DedupStore, Ending, Entered, Entry, Journal, OwnedDedupStore, PurgeOptions, PurgeReport } from './store.js';
export { isChange, rowStore, type Rows } from './row-store.js';
