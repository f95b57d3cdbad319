import type { OperationRecord } from 'samekey';
import type { Counts, Step } from './timeline.js';

/** One operation, ready to be drawn. */
export interface Entry {
  readonly order: number;
  readonly record: OperationRecord;
  readonly steps: readonly Step[];
}

export interface Picture {
  readonly order: number;
  /** Cents. */
  readonly amount: number;
  /** The operation of the order on the page, once there is one. */
  readonly current: OperationRecord | undefined;
  /** What a call ended with, when it did not go as it should. */
  readonly failure: string | undefined;
  readonly counts: Counts;
  /** Newest first. */
  readonly entries: readonly Entry[];
}

export const part = (id: string): HTMLElement => {
  const found = document.querySelector<HTMLElement>(`#${id}`);
  if (!found) throw new Error(`The page has no element #${id}.`);
  return found;
};

const element = (tag: string, { text, ...attributes }: Readonly<Record<string, string | undefined>>, children: readonly Node[] = []): HTMLElement => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
};

const euros = new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' });

const chargeOf = ({ answer }: OperationRecord): string => {
  const body = answer?.body ? JSON.parse(new TextDecoder().decode(answer.body)) as { id?: string } : {};
  return body.id ?? '';
};

const STATES: { readonly [S in OperationRecord['state']]: (record: OperationRecord) => string } = {
  pending: () => 'on its way',
  succeeded: record => `paid, ${chargeOf(record)}`,
  rejected: () => 'refused',
  in_doubt: () => 'in doubt',
  cancelled: () => 'cancelled',
};

const seconds = (ms: number): string => `+${(ms / 1_000).toFixed(2)} s`;

const stepItem = (tone: string, time: string, text: string): HTMLElement =>
  element('li', { 'data-tone': tone }, [element('small', { text: time }), element('i', { 'aria-hidden': 'true' }), element('span', { text })]);

const operationCard = ({ order, record, steps }: Entry, isNewest: boolean): HTMLElement => {
  const start = steps[0]?.at ?? record.createdAt;
  const items = steps.map(({ at, tone, text }) => stepItem(tone, seconds(at - start), text));
  if (record.state === 'pending') items.push(stepItem('pending', '', 'Waiting …'));
  const summary = element('summary', {}, [
    element('h3', { text: `Order ${order}` }),
    element('span', { class: 'state', 'data-state': record.state, text: STATES[record.state](record) }),
    element('code', { title: `Idempotency-Key ${record.key}`, text: `key ${record.key.slice(0, 8)}…` }),
  ]);
  return element('details', { class: 'card', 'data-order': String(order), ...(isNewest && { open: '' }) }, [summary, element('ol', {}, items)]);
};

const statusOf = ({ current, failure }: Picture): readonly [state: string, text: string] => {
  if (failure !== undefined) return ['failed', failure];
  if (!current) return ['none', ''];
  if (current.state === 'pending') return ['pending', 'Paying … feel free to click or to reload.'];
  return [current.state, current.state === 'succeeded' ? `Paid once. Charge ${chargeOf(current)}.` : `This payment is ${STATES[current.state](current)}.`];
};

const setText = (id: string, text: string): void => {
  const target = part(id);
  if (target.textContent !== text) target.textContent = text;
};

const drawCheckout = (picture: Picture): void => {
  const { order, amount, current } = picture;
  const [state, text] = statusOf(picture);
  setText('order', `Order ${order}`);
  setText('amount', euros.format(amount / 100));
  setText('status', text);
  part('status').dataset['state'] = state;
  setText('pay', current?.state === 'succeeded' ? 'Next order' : `Pay ${euros.format(amount / 100)}`);
};

/** While a payment is on its way there may be fewer charges than orders; more is what must never be. */
const verdictOf = ({ orders, keys, charges }: Counts): string => {
  if (charges > orders || keys > orders) return 'broken';
  return orders === keys && keys === charges ? 'equal' : 'open';
};

const drawHistory = ({ counts, entries }: Picture): void => {
  for (const [id, count] of Object.entries(counts)) setText(id, String(count));
  part('counts').dataset['verdict'] = verdictOf(counts);
  part('empty').hidden = entries.length > 0;
  const open = new Map([...document.querySelectorAll('details')].map(card => [card.dataset['order'], card.open]));
  const cards = entries.map((entry, index) => operationCard(entry, open.get(String(entry.order)) ?? index === 0));
  const focused = document.activeElement?.closest('details')?.dataset['order'];
  part('operations').replaceChildren(...cards);
  // Whoever reads with the keyboard stays where they are.
  cards.find(card => card.dataset['order'] === focused)?.querySelector('summary')?.focus();
};

/** Draws what is new. What has not changed stays as it is, focus and all. */
export const createView = (): ((picture: Picture) => void) => {
  let drawn = '';
  return picture => {
    drawCheckout(picture);
    const history = JSON.stringify([picture.counts, picture.entries]);
    if (history === drawn) return;
    drawn = history;
    drawHistory(picture);
  };
};
