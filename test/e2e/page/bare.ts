import ky from 'ky';

/**
 * The same checkout as many shops have it: retries, a key of its own for every call, and a mark in localStorage that a
 * payment is under way. It is the control of the tests beside it: what they forbid must be able to happen.
 */
const output = (id: string): HTMLElement => document.querySelector<HTMLElement>(`#${id}`)!;

const pay = async (): Promise<void> => {
  localStorage.setItem('paying', 'yes');
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const { id } = await ky.post('/charges', { headers, json: { order: '42', amount: 4200 }, retry: { methods: ['post'] } }).json<{ id: string }>();
  localStorage.removeItem('paying');
  output('answer').textContent = id;
};

const failed = (error: unknown): void => {
  output('failure').textContent = String(error);
};

output('pay').addEventListener('click', () => void pay().catch(failed));
if (localStorage.getItem('paying') !== null) pay().catch(failed);
