import { ownSignals } from './own-signals.js';
import type { Profile, Signal } from './profile.js';

const DAY_MS = 86_400_000;

const signals: readonly Signal[] = [
  ...ownSignals,
  { means: 'in-progress', status: [409], code: /^idempotency_key_in_use$/ },
  { means: 'in-progress', status: [409], header: ['Stripe-Should-Retry', /^true$/i] },
  { means: 'key-reused', status: [400, 409, 422], code: /^idempotency_error$/ },
  { means: 'replayed', header: ['Idempotent-Replayed', /^true$/i] },
  { means: 'should-retry', header: ['Stripe-Should-Retry', /^true$/i] },
  { means: 'should-not-retry', header: ['Stripe-Should-Retry', /^false$/i] },
];

const v1: Profile = {
  name: 'stripe',
  header: 'Idempotency-Key',
  quoting: 'bare',
  maxLength: 255,
  keyFormat: /^[\x21-\x7e]+$/,
  keyWindow: DAY_MS,
  methods: ['POST'],
  identityHeaders: ['stripe-account', 'stripe-context'],
  comparesBodies: true,
  keyRequired: false,
  expiredKey: 'fresh',
  stores: 'all',
  echoesKey: true,
  refusals: 'stripe',
  signals: [
    ...signals,
    // "Request failed": the parameters were valid and execution began, so the answer is saved.
    { means: 'stored', status: [402] },
  ],
};

const v2: Profile = { ...v1, name: 'stripe-v2', keyWindow: 30 * DAY_MS, methods: ['POST', 'DELETE'], stores: 'success', replays: 'latest', signals };

/** Stripe's dialect: v1 as it stands, and a function that gives that of a version, also to be spread into one of your own. */
export type Stripe = Profile & ((options: { readonly version: 1 | 2 }) => Profile);

/**
 * Stripe. The scope of a key is the account, in test or live mode (second-hand).
 *
 * As it stands, API v1: every POST, keys of up to 255 characters kept for at least 24 h, a saved answer is replayed
 * whatever its status once execution began. Bad parameters, concurrent use and rate limits are refused before that and
 * not saved, so a plain 4xx says nothing about the key. `idempotency_key_in_use` is second-hand.
 *
 * `stripe({ version: 2 })`, API v2: POST and DELETE, 30 days; a success is not repeated but shown as it is now, failed or
 * partial work is driven on under the same key. [UNVERIFIED] for v2: the longest key, what is said to a concurrent
 * request and to another body under the key; they are taken from v1.
 *
 * Sources: docs.stripe.com/api/idempotent_requests, the API v2 overview, stripe-node's RequestSender.
 *
 * @example createClient({ prefix: 'https://api.stripe.com/v1', profile: stripe })
 * @example createClient({ prefix: 'https://api.stripe.com/v2', profile: stripe({ version: 2 }), methods: ['post', 'delete'] })
 */
export const stripe: Stripe = Object.defineProperties(({ version }: { readonly version: 1 | 2 }): Profile => (version === 2 ? v2 : v1), Object.getOwnPropertyDescriptors(v1)) as Stripe;
