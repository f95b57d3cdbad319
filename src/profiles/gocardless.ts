import { ownSignals } from './own-signals.js';
import type { Profile } from './profile.js';

const DAY_MS = 86_400_000;

const CONFLICT = /^idempotent_creation_conflict$/;

interface Conflict {
  readonly error?: { readonly errors?: readonly ({ readonly links?: { readonly conflicting_resource_id?: unknown } } | null)[] } | null;
}

/** An id that can be nothing but the last segment of a path. */
const ID = /^\w+$/;

const conflictingResourceId = (json: unknown): string | undefined => {
  const errors = (json as Conflict | null | undefined)?.error?.errors;
  const ids = Array.isArray(errors) ? (errors as NonNullable<typeof errors>).map(error => error?.links?.conflicting_resource_id) : [];
  return ids.find((id): id is string => typeof id === 'string' && ID.test(id));
};

/**
 * GoCardless: creates are never repeated. Once one has succeeded, every further one under its key gets 409
 * `idempotent_creation_conflict` with the id of what is there, whatever its body; a client fetches that. A failed create
 * leaves its key free.
 *
 * [UNVERIFIED] `keyWindow` (30 days are often named; 24 h is taken), the longest key, the scope of a key, what a concurrent request is told.
 *
 * Sources: gocardless-nodejs and gocardless-pro-ruby, gocardless.com/blog/idempotency-keys.
 */
export const gocardless: Profile = {
  name: 'gocardless',
  header: 'Idempotency-Key',
  quoting: 'bare',
  maxLength: 128,
  keyFormat: /^[\x21-\x7e]+$/,
  keyWindow: DAY_MS,
  methods: ['POST'],
  identityHeaders: [],
  comparesBodies: false,
  keyRequired: false,
  expiredKey: 'fresh',
  stores: 'success',
  replays: 'conflict',
  refusals: 'gocardless',
  signals: [
    ...ownSignals,
    { means: 'already-done', status: [409], code: CONFLICT },
    { means: 'replayed', status: [409], code: CONFLICT },
  ],
  resourceOf(json, { url, headers, signal, credentials }) {
    const id = conflictingResourceId(json);
    const { pathname } = new URL(url);
    const asking = new Headers(headers);
    for (const name of ['idempotency-key', 'content-type']) asking.delete(name);
    return id === undefined ? undefined : new Request(new URL(`${pathname.replace(/\/$/, '')}/${id}`, url), { headers: asking, signal, credentials });
  },
};
