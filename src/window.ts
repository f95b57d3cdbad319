import type { Head } from './operation.js';

/** Sends stop this long before the server may forget the key, ms: clocks differ, and a request takes time to arrive. */
export const WINDOW_MARGIN_MS = 300_000;

/** Whether one more send, which may take `timeout` ms, could meet a server that has forgotten the key. */
export const isWindowOver = ({ firstSentAt, keyWindow }: Pick<Head, 'firstSentAt' | 'keyWindow'>, now: number, timeout: number): boolean => {
  if (firstSentAt === undefined) return false;
  // A first send in the future means that the clock was set back by an unknown amount.
  if (firstSentAt > now) return true;
  // A window that is hardly longer than the margin would never be open.
  const margin = Math.min(WINDOW_MARGIN_MS, keyWindow / 2);
  return now + (Number.isFinite(timeout) ? timeout : 0) > firstSentAt + keyWindow - margin;
};
