import { ietf } from './ietf.js';
import type { Profile } from './profile.js';

/** The spellings that many servers share, for an API whose dialect nobody wrote down. Start from it: `{ ...generic, header: 'X-Request-Token' }`. */
export const generic: Profile = {
  ...ietf,
  name: 'generic',
  signals: [
    ...ietf.signals,
    { means: 'in-progress', status: [409, 425], code: /(in[-_ ]?progress|in[-_ ]?use|concurrent|outstanding|being processed)/i },
    { means: 'key-reused', status: [400, 409, 417, 422], code: /idempot\w*.*(mismatch|reuse|already[-_ ]used|conflict)/i },
    { means: 'replayed', header: ['X-Idempotent-Replayed', /^true$/i] },
    { means: 'replayed', header: ['Idempotent-Replay', /^true$/i] },
    { means: 'replayed', header: ['Request-Idempotency', /^true$/i] },
  ],
};
