import type { Profile } from './profile.js';

const DAY_MS = 86_400_000;

/**
 * The default: draft-ietf-httpapi-idempotency-key-header-07 and samekey's own servers. Keys go out bare (most servers in
 * use do not parse the quotes that the draft asks for); servers of ours accept both forms. The draft leaves the window to
 * each server; 24 h is what most publish.
 */
export const ietf: Profile = {
  name: 'ietf',
  header: 'Idempotency-Key',
  quoting: 'bare',
  maxLength: 255,
  keyFormat: /^[\x21-\x7e]+$/,
  keyWindow: DAY_MS,
  methods: ['POST', 'PATCH'],
  identityHeaders: [],
  comparesBodies: true,
  keyRequired: true,
  expiredKey: 'fresh',
  stores: 'deterministic',
  refusals: 'problem',
  signals: [
    { means: 'in-progress', status: [409], code: /^(idempotency_in_progress|idempotency_key_in_use|A request is outstanding for this Idempotency-Key)$/i },
    { means: 'key-reused', status: [400, 409, 422], code: /^(idempotency_key_reused|Idempotency-Key is already used)$/i },
    { means: 'result-unavailable', status: [409, 410], code: /^idempotency_result_(unavailable|expired)$/i },
    { means: 'indeterminate', status: [409], code: /^idempotency_indeterminate$/i },
    { means: 'key-expired', status: [409, 412], code: /^idempotency_key_expired$/i },
    { means: 'replayed', header: ['Idempotent-Replayed', /^true$/i] },
    { means: 'replayed', header: ['Idempotency-Replayed', /^true$/i] },
    { means: 'replayed', header: ['Idempotency-Status', /^replayed$/i] },
    { means: 'stored', header: ['Idempotency-Status', /^(stored|replayed)$/i] },
    { means: 'unprotected', header: ['Idempotency-Status', /^(none|ignored)$/i] },
    { means: 'unprotected', status: [501] },
    { means: 'unrecorded', header: ['Idempotency-Status', /^unrecorded$/i] },
  ],
};
