import { createClient } from '../../../src/index.js';

/** What the tests read and call from outside. */
export interface CheckoutPage {
  /** Ids of the charges that calls and re-attached operations ended with, in order. */
  readonly answers: readonly string[];
  pay(): Promise<string>;
}

declare global {
  interface Window {
    checkout: CheckoutPage;
  }
}

const OPERATION = 'order:42:charge';

// Short waits keep the tests short; everything else is as a shop would have it.
const api = createClient({ prefix: location.origin, scope: 'shop', retry: { delay: () => 100 } });
const answers: string[] = [];

const output = (id: string): HTMLElement => document.querySelector<HTMLElement>(`#${id}`)!;

const learn = async (response: Response): Promise<string> => {
  const { id } = await response.json() as { id: string };
  answers.push(id);
  output('answer').textContent = id;
  return id;
};

const failed = (error: unknown): void => {
  output('failure').textContent = String(error);
};

const pay = async (): Promise<string> => learn(await api.post('charges', { operation: OPERATION, json: { order: '42', amount: 4200 } }));

/** What the page of an order does when it opens: go on with what was left, and show how it ends. */
const reattach = async (): Promise<void> => {
  api.operations.start();
  if (await api.operations.get(OPERATION)) await learn(await api.operations.result(OPERATION));
};

output('pay').addEventListener('click', () => void pay().catch(failed));
window.checkout = { answers, pay };
reattach().catch(failed);
