import { ownSignals } from './own-signals.js';
import type { Profile } from './profile.js';

const HOUR_MS = 3_600_000;

/**
 * PayPal's REST APIs: POST with `PayPal-Request-Id`. A repeat gets the latest status of the resource, not the first
 * answer again. Keys belong to the caller of one API.
 *
 * `keyWindow` and `maxLength` differ per API, so give your own: `createClient({ keyWindow })`, `{ ...paypal, maxLength }`.
 * Kept for 3 h (vault; taken here, as the least), 6 h up to 72 h on request (orders v2), 72 h (subscriptions, products),
 * 30 days (payments v1, payouts), 45 days (payments v2), for ever (orders v1). Longest key: 108 (orders v2; taken here),
 * 78 (payments v1), 1000 (payouts).
 *
 * [UNVERIFIED] the status of `DUPLICATE_REQUEST_ID` and `PAYPAL_REQUEST_ID_PREVIOUSLY_USED`, and whether every API compares bodies.
 * [UNVERIFIED] which refusals are stored: none is taken to be.
 *
 * Sources: developer.paypal.com (idempotency guideline, error pages), paypal-rest-api-specifications (openapi/*).
 */
export const paypal: Profile = {
  name: 'paypal',
  header: 'PayPal-Request-Id',
  quoting: 'bare',
  maxLength: 108,
  keyFormat: /^[\x21-\x7e]+$/,
  keyWindow: 3 * HOUR_MS,
  methods: ['POST'],
  identityHeaders: [],
  comparesBodies: true,
  keyRequired: false,
  expiredKey: 'fresh',
  stores: 'deterministic',
  replays: 'latest',
  refusals: 'paypal',
  signals: [
    ...ownSignals,
    { means: 'in-progress', status: [409], code: /^PREVIOUS_REQUEST_IN_PROGRESS$/ },
    { means: 'key-reused', status: [400, 409, 422], code: /^(DUPLICATE_REQUEST_ID|PAYPAL_REQUEST_ID_PREVIOUSLY_USED)$/ },
  ],
};
