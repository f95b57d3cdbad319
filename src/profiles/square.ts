import { bodyField } from './body-field.js';
import { ownSignals } from './own-signals.js';
import type { Profile } from './profile.js';

const DAY_MS = 86_400_000;

/**
 * Square: the key is the member `idempotency_key` of the JSON body. 45 characters are what CreatePayment and most others
 * take; some endpoints take 64, 128, 192 or 255. A repeat gets the answer of the first success.
 *
 * [UNVERIFIED] `keyWindow`: not published (an older answer of the staff says that keys do not expire); 24 h is taken.
 * [UNVERIFIED] the status of `IDEMPOTENCY_KEY_REUSED` (400, as it seems), and what a concurrent request is told.
 * [UNVERIFIED] which refusals are stored: only the first success is documented.
 *
 * Sources: Square's api.json, developer.squareup.com/docs/working-with-apis/idempotency, forum threads 28303 and 28309,
 * connect-api-examples issue 135.
 */
export const square: Profile = {
  name: 'square',
  bodyField: bodyField('idempotency_key'),
  quoting: 'bare',
  maxLength: 45,
  keyFormat: /^[\x20-\x7e]+$/,
  keyWindow: DAY_MS,
  methods: ['POST'],
  identityHeaders: [],
  comparesBodies: true,
  keyRequired: true,
  expiredKey: 'fresh',
  stores: 'success',
  refusals: 'square',
  signals: [...ownSignals, { means: 'key-reused', status: [400, 409, 422], code: /^IDEMPOTENCY_KEY_REUSED$/ }],
};
