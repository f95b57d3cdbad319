import { ownSignals } from './own-signals.js';
import type { Profile } from './profile.js';

const DAY_MS = 86_400_000;

/**
 * Adyen: POST, keys of up to 64 characters per company account, and per region: the same key at another regional endpoint
 * is another key. A repeat gets the first response. `Transient-Error: true` asks for the same request under the same key;
 * a request that meets its first one is refused with error 704 (409 or 422), and without that header it is to be left
 * alone, whence it is in doubt.
 *
 * [UNVERIFIED] `keyWindow`: one version of the documentation says at least 31 days, others 7; the shorter one is taken.
 * [UNVERIFIED] another body under the key: nothing is documented for it. Samekey's servers answer 422 with a code of their own.
 * [UNVERIFIED] which refusals are stored: none is taken to be.
 *
 * Sources: docs.adyen.com/development-resources/api-idempotency, adyen-java-api-library issues 284 and 288, adyen-openapi.
 */
export const adyen: Profile = {
  name: 'adyen',
  header: 'Idempotency-Key',
  quoting: 'bare',
  maxLength: 64,
  keyFormat: /^[\x21-\x7e]+$/,
  keyWindow: 7 * DAY_MS,
  methods: ['POST'],
  identityHeaders: [],
  comparesBodies: true,
  keyRequired: false,
  expiredKey: 'fresh',
  stores: 'deterministic',
  echoesKey: true,
  refusals: 'adyen',
  signals: [
    ...ownSignals,
    { means: 'in-progress', status: [409, 422], code: /^704$/, header: ['Transient-Error', /^true$/i] },
    // "Already processed or in progress", and not to be asked again: nobody knows which.
    { means: 'indeterminate', status: [409, 422], code: /^704$/, header: ['Transient-Error', /^(?!true$)/i] },
    { means: 'should-retry', header: ['Transient-Error', /^true$/i] },
    // Only where it is said: a gateway's error, which has no such header, is safe to repeat under the key.
    { means: 'should-not-retry', header: ['Transient-Error', /^false$/i] },
  ],
};
