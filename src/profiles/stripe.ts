import type { Profile } from './profile.js';

const DAY_MS = 86_400_000;

/**
 * Stripe's API v1: every POST, keys up to 255 characters kept for at least 24 h, a saved answer is replayed whatever its
 * status once execution began. Bad parameters, concurrent use and rate limits are refused before that and not saved,
 * so a plain 4xx says nothing about the key (Stripe's documentation and stripe-node's RequestSender).
 * `idempotency_key_in_use` is second-hand.
 */
export const stripe: Profile = {
  name: 'stripe',
  header: 'Idempotency-Key',
  quoting: 'bare',
  maxLength: 255,
  alphabet: /^[\x21-\x7e]+$/,
  keyWindow: DAY_MS,
  methods: ['POST'],
  identityHeaders: ['stripe-account', 'stripe-context'],
  comparesBodies: true,
  keyRequired: false,
  expiredKey: 'fresh',
  stores: 'all',
  refusals: 'stripe',
  signals: [
    { means: 'in-progress', status: [409], code: /^idempotency_key_in_use$/ },
    { means: 'in-progress', status: [409], header: ['Stripe-Should-Retry', /^true$/i] },
    { means: 'key-reused', status: [400, 409, 422], code: /^idempotency_error$/ },
    // "Request failed": the parameters were valid and execution began, so the answer is saved.
    { means: 'stored', status: [402] },
    { means: 'replayed', header: ['Idempotent-Replayed', /^true$/i] },
    { means: 'should-retry', header: ['Stripe-Should-Retry', /^true$/i] },
    { means: 'should-not-retry', header: ['Stripe-Should-Retry', /^false$/i] },
    // What Stripe has no word for; samekey's servers and mocks of this dialect say it so.
    { means: 'result-unavailable', status: [409], code: /^idempotency_result_(unavailable|expired)$/ },
    { means: 'indeterminate', status: [409], code: /^idempotency_indeterminate$/ },
    { means: 'key-expired', status: [412], code: /^idempotency_key_expired$/ },
  ],
};
