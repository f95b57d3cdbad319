import { describe, expect, it } from 'vitest';
import type { DemoEvent } from '../../examples/node/events.js';
import { faultOf, killsOf } from '../../examples/node/plan.js';
import { drawLegend, drawTimeline } from '../../examples/node/timeline.js';
import { storyOf } from '../../examples/node/story.js';
import { verdictOf } from '../../examples/node/verdict.js';

const outcome = (did: 'charged' | 'replayed' | 'nothing', delivered = true) => ({ did, delivered });

/** One order: charged, the answer lost, the shop killed, answered again. */
const lost: readonly DemoEvent[] = [
  { at: 0, kind: 'started' },
  { at: 100, kind: 'arrived', request: 1, order: 'a', key: 'k1' },
  { at: 150, kind: 'charged', order: 'a', charge: 'ch_1' },
  { at: 200, kind: 'answered', request: 1, order: 'a', outcome: outcome('charged', false) },
  { at: 400, kind: 'killed' },
  { at: 700, kind: 'arrived', request: 2, order: 'a', key: 'k1' },
  { at: 710, kind: 'answered', request: 2, order: 'a', outcome: outcome('replayed') },
  { at: 900, kind: 'killed' },
];

const doubled: readonly DemoEvent[] = [
  ...lost,
  { at: 950, kind: 'arrived', request: 3, order: 'a', key: 'k2' },
  { at: 960, kind: 'charged', order: 'a', charge: 'ch_2' },
  { at: 970, kind: 'answered', request: 3, order: 'a', outcome: outcome('charged') },
];

const plain = (text: string): string => text.replace(/\x1b\[\d+m/g, '');

describe('the story of an order', () => {
  it('marks requests by what came of them, and kills only while the order is on its way', () => {
    expect(storyOf('a', lost).marks.map(({ sign }) => sign)).toEqual(['charged, not heard', 'killed', 'replayed']);
  });

  it('is drawn on one time axis, each mark in its column', () => {
    const [axis = '', kills = '', row = ''] = drawTimeline(lost, { orders: ['a'], columns: 80, until: 999 }).map(plain);
    expect(axis.indexOf('0s')).toBe(10);
    expect(kills.indexOf('†')).toBe(row.indexOf('†'));
    expect(row.replace(/─+/g, '─')).toMatch(/^a +◐─†─↺ +ch_1 sent 2×, 1 key$/);
    expect(row.length).toBeLessThanOrEqual(80);
  });

  it('never makes a line longer than the terminal', () => {
    const many = Array.from({ length: 300 }, (_, index): DemoEvent => ({ at: index, kind: 'arrived', request: index, order: 'a', key: 'k1' }));
    for (const line of [...drawTimeline(many, { orders: ['a'], columns: 80, until: 300 }), ...drawLegend(80)]) expect(plain(line).length).toBeLessThanOrEqual(80);
  });
});

describe('the verdict', () => {
  it('is good when each order has one key and one charge, and the shop knows it', () => {
    expect(verdictOf(['a'], lost, new Map([['a', 'ch_1']]))).toMatchObject({ ok: true, orders: 1, charges: 1, keys: 1, kills: 2, requests: 2 });
  });

  it.each<[string, readonly DemoEvent[], string]>([
    ['an order was charged twice', doubled, 'ch_2'],
    ['the shop believes in another charge', lost, 'ch_9'],
    ['nothing was charged', [], 'ch_1'],
  ])('is bad when %s', (_, events, receipt) => {
    expect(verdictOf(['a'], events, new Map([['a', receipt]])).ok).toBe(false);
  });
});

describe('the plan', () => {
  it('is the same for the same seed, another for another, and lets every order through in the end', () => {
    const faults = (seed: number): string[] => Array.from({ length: 40 }, (_, order) => faultOf(seed, `order-${order}`, 1));
    expect(faults(7)).toEqual(faults(7));
    expect(faults(7)).not.toEqual(faults(8));
    expect(killsOf(7)).toEqual(killsOf(7));
    expect(Array.from({ length: 40 }, (_, order) => faultOf(7, `order-${order}`, 5))).toEqual(Array.from({ length: 40 }, () => 'none'));
  });
});
