export { conditional, type ConditionalOptions } from './conditional.js';
export { etagOf, type Version } from './etag.js';
export type { PreconditionCode } from './problems.js';
export type { RowId, VersionedDialect } from './rows.js';
export { versionedResource, type VersionedResource, type VersionedResourceOptions } from './versioned-resource.js';
