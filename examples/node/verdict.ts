import type { DemoEvent } from './events.js';
import { killsIn, storyOf } from './story.js';

/** What the demo has to show for itself. */
export interface Verdict {
  /** One order, one key, one charge, and the shop knows which. */
  readonly ok: boolean;
  readonly orders: number;
  readonly charges: number;
  readonly keys: number;
  readonly kills: number;
  readonly requests: number;
  /** Orders that were charged more than once. */
  readonly doubled: readonly string[];
  /** Orders whose charge the shop does not know. */
  readonly unknown: readonly string[];
}

/**
 * Compares three books: what was ordered, what the payment API charged, and what the shop believes.
 *
 * @param receipts - order to charge, as the shop's last process told it
 */
export const verdictOf = (orders: readonly string[], events: readonly DemoEvent[], receipts: ReadonlyMap<string, string>): Verdict => {
  const stories = orders.map(order => storyOf(order, events));
  const doubled = stories.filter(({ charges }) => charges.length > 1).map(({ order }) => order);
  const unknown = stories.filter(({ order, charges }) => charges.length === 0 || !charges.includes(receipts.get(order) ?? '')).map(({ order }) => order);
  const keys = new Set(stories.flatMap(story => [...story.keys])).size;
  const charges = stories.reduce((sum, story) => sum + story.charges.length, 0);
  return {
    ok: charges === orders.length && keys === orders.length && doubled.length === 0 && unknown.length === 0,
    orders: orders.length,
    charges,
    keys,
    kills: killsIn(events).length,
    requests: stories.reduce((sum, story) => sum + story.requests, 0),
    doubled,
    unknown,
  };
};
