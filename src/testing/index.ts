export { describeKeyStore, keyStoreContract } from './keystore.js';
export type { DescribeKeyStoreOptions, KeyStoreCase, KeyStoreSubject, Skip, TestRunner } from './keystore.js';
