import { ietf } from './ietf.js';
import type { Signal } from './profile.js';

/**
 * What most dialects have no word for. Samekey's servers and mocks say it in the dialect's own error body, by the same
 * codes as in their default dialect.
 */
export const ownSignals: readonly Signal[] = ietf.signals.filter(({ code }) => code !== undefined);
