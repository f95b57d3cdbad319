export { describeKeyStore, keyStoreContract } from './keystore.js';
export type { DescribeKeyStoreOptions, KeyStoreCase, KeyStoreSubject, Skip, TestRunner } from './keystore.js';
export { dedupStoreContract, describeDedupStore } from './dedup-store.js';
export type { DedupStoreCase, DedupStoreSubject } from './dedup-store.js';
