export { describeKeyStore, keyStoreContract } from './keystore.js';
export type { DescribeKeyStoreOptions, KeyStoreCase, KeyStoreSubject, Skip, TestRunner } from './keystore.js';
export { dedupStoreContract, describeDedupStore } from './dedup-store.js';
export type { DedupStoreCase, DedupStoreSubject } from './dedup-store.js';
export { conformance, conformanceTable, createScenarios, describeConformance, PAGE_ORIGIN, scenarioGuard, TENANT_HEADER, toNodeScenarioListener } from './conformance.js';
export type {
  Ability, ConformanceResult, ConformanceTarget, EffectLedger, IncomingLike, NodeScenarioListener, OutgoingLike, RunContext, ScenarioReport, Scenarios, Server, ServerConfig,
  StoreFault, Subject, Traits, Verdict, Words,
} from './conformance.js';
