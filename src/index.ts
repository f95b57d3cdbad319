export { createClient, operationOf } from './client.js';
export type { Client, Verb } from './client.js';
export { systemClock } from './clock.js';
export type { Clock } from './clock.js';
export {
  AnswerOmittedError,
  BodyNotReplayableError,
  ForeignScopeError,
  InDoubtError,
  InvalidKeyError,
  isSamekeyError,
  KeyReusedError,
  OperationMismatchError,
  OperationPendingError,
  RedirectedError,
  SamekeyError,
  ScopeMissingError,
  StoreCorruptError,
  StoreFullError,
  StoreUnavailableError,
  UndeclaredOriginError,
} from './errors.js';
export type { ErrorCode, OperationInfo, Phase } from './errors.js';
export type { Listeners } from './events.js';
export { graphqlAccept } from './graphql.js';
export { naturalKey } from './key.js';
export type { KeyStore } from './keystore/keystore.js';
export type { State } from './operation.js';
export type { ListOptions, OperationRecord, OperationRef, Operations } from './operations.js';
export { deviceScope } from './options.js';
export type { CallOptions, ClientOptions, FetchInit, OperationOptions, Scope } from './options.js';
export type { Profile } from './profiles/profile.js';
export type { ResumeOptions, ResumeReport } from './resume.js';
export type { Runner } from './runner.js';
