export { createIdempotencyMock, type IdempotencyMock, type IdempotencyMockOptions, type IdempotentOptions } from './mock.js';
export type { MockCors } from './cors.js';
export type { DuplicateDelivery } from './delivery.js';
export type { Fault, FaultKind, FaultLimits, FaultOptions, FaultPhase, FaultSettings } from './faults.js';
export type { LedgerEntry, LedgerEvent } from './ledger.js';
export { NotMockedError, onlyMocked, type FetchFunction, type OnlyMockedOptions } from './only-mocked.js';
export type { IdempotencyInfo, IdempotentResolver } from './resolver.js';
