export { batched } from './batcher.js';
export type { BatchLimits, KeyStoreDriver } from './batcher.js';
export { NEVER } from './keystore.js';
export type { Cursor, Durability, HeadRef, KeyStore, ScanQuery, StoreInfo, StoredHead, Write, WriteResult } from './keystore.js';
