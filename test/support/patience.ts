import { vi } from 'vitest';

/** How long polls wait on a busy machine before they give up; nothing is meant to take as long. */
const HANG_MS = 20_000;

/** For files whose tests poll: call it once, at their top. */
export const bePatient = (): void => {
  vi.setConfig({ testTimeout: 2 * HANG_MS, expect: { poll: { timeout: HANG_MS } } });
};
