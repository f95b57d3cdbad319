import type { DemoEvent, Outcome } from './events.js';

/** What a mark on an order's line stands for. */
export type Sign = 'sent' | 'charged' | 'charged, not heard' | 'replayed' | 'replayed, not heard' | 'still at work' | 'nothing' | 'killed';

export interface Mark {
  readonly at: number;
  readonly sign: Sign;
}

/** What happened to one order. */
export interface OrderStory {
  readonly order: string;
  readonly marks: readonly Mark[];
  readonly charges: readonly string[];
  readonly keys: ReadonlySet<string>;
  readonly requests: number;
}

const SIGNS: { readonly [Did in Outcome['did']]: readonly [heard: Sign, lost: Sign] } = {
  charged: ['charged', 'charged, not heard'],
  replayed: ['replayed', 'replayed, not heard'],
  running: ['still at work', 'still at work'],
  nothing: ['nothing', 'nothing'],
};

const signOf = ({ did, delivered }: Outcome): Sign => SIGNS[did][delivered ? 0 : 1];

const isOfOrder = (order: string) => (event: DemoEvent): boolean => 'order' in event && event.order === order;

/** A mark stands where its request arrived, and says what came of it as soon as that is known. */
const requestMarks = (events: readonly DemoEvent[]): Mark[] => {
  const outcomes = new Map(events.flatMap(event => (event.kind === 'answered' ? [[event.request, event.outcome]] : [])));
  return events.flatMap(event => {
    if (event.kind !== 'arrived') return [];
    const outcome = outcomes.get(event.request);
    return [{ at: event.at, sign: outcome ? signOf(outcome) : 'sent' }];
  });
};

const isHeard = ({ sign }: Mark): boolean => sign === 'charged' || sign === 'replayed';

/** Kills that met the order on its way: after its first request, before the shop had its answer for good. */
const killMarks = (kills: readonly number[], requests: readonly Mark[]): Mark[] => {
  const first = requests[0]?.at ?? Infinity;
  const last = requests.at(-1);
  const end = last && isHeard(last) ? last.at : Infinity;
  return kills.filter(at => at > first && at < end).map(at => ({ at, sign: 'killed' }));
};

export const killsIn = (events: readonly DemoEvent[]): number[] => events.flatMap(event => (event.kind === 'killed' ? [event.at] : []));

export const storyOf = (order: string, events: readonly DemoEvent[]): OrderStory => {
  const own = events.filter(isOfOrder(order));
  const requests = requestMarks(own);
  return {
    order,
    marks: [...requests, ...killMarks(killsIn(events), requests)].sort((a, b) => a.at - b.at),
    charges: own.flatMap(event => (event.kind === 'charged' ? [event.charge] : [])),
    keys: new Set(own.flatMap(event => (event.kind === 'arrived' ? [event.key] : []))),
    requests: requests.length,
  };
};
