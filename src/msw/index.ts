export { createIdempotencyMock, type IdempotencyMock, type IdempotencyMockOptions, type IdempotentOptions } from './mock.js';
export type { Fault, FaultKind, FaultLimits, FaultOptions, FaultPhase, FaultSettings } from './faults.js';
export type { LedgerEntry, LedgerEvent } from './ledger.js';
export type { IdempotencyInfo, IdempotentResolver } from './resolver.js';
