import { ownSignals } from './own-signals.js';
import type { Profile } from './profile.js';

const MINUTE_MS = 60_000;

/** Refusals that may be stored: not those of a door (401, 429 and the like), nor 409, which says "in progress". */
const STORABLE = [400, 402, 404, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 422, 428];

/**
 * Azure, by OASIS Repeatable Requests 1.0: a GUID in `Repeatability-Request-ID`, and in `Repeatability-First-Sent` when
 * the first attempt was made, the same on every one. It is the one dialect that refuses a key which is older than its
 * window (412) instead of running it again, and one where the operation knows no keys (501) instead of ignoring it.
 * Answers to 2xx and 4xx are kept, 5xx is executed again (Azure Communication Services, Email).
 *
 * The window is at least 5 minutes; services may have a longer one: `createClient({ keyWindow })`. Within it the clocks of
 * client and server must agree. A 409 counts as "in progress" whatever its code, as Email uses it.
 *
 * [UNVERIFIED] for services other than Communication Services: which answers are kept, and the 409.
 *
 * Sources: learn.microsoft.com/rest/api/communication/repeatable-requests, microsoft/api-guidelines, the OASIS specification.
 */
export const azure: Profile = {
  name: 'azure',
  header: 'Repeatability-Request-ID',
  quoting: 'bare',
  firstSentHeader: 'Repeatability-First-Sent',
  maxLength: 36,
  keyFormat: /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i,
  keyWindow: 5 * MINUTE_MS,
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  identityHeaders: ['repeatability-client-id'],
  comparesBodies: true,
  keyRequired: false,
  unsupported: 'refused',
  expiredKey: 'refuse',
  stores: 'deterministic',
  refusals: 'azure',
  signals: [
    ...ownSignals,
    { means: 'stored', status: STORABLE, header: ['Repeatability-Result', /^accepted$/i] },
    { means: 'in-progress', status: [409], header: ['Repeatability-Result', /^accepted$/i] },
    { means: 'key-reused', status: [400], header: ['Repeatability-Result', /^rejected$/i] },
    { means: 'key-expired', status: [412], header: ['Repeatability-Result', /^rejected$/i] },
    { means: 'unprotected', status: [501] },
  ],
};
