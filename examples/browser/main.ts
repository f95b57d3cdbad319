import type { OperationRecord } from 'samekey';
import { clearPageLog, currentOrder, log, nextOrder, readLog } from './page-log.js';
import { mock, plant, startPaymentApi, type Fault } from './payment-mock.js';
import { CUSTOMER, api, pay } from './shop.js';
import { countsOf, stepsOf } from './timeline.js';
import { createView, part, type Picture } from './view.js';

/** ms between two looks at what other tabs do. */
const LOOK_MS = 250;

const AMOUNT = 1_840;

const view = createView();
let failure: string | undefined;

const orderOfName = (name: string | undefined): number => Number(name?.split(':')[1]);

/** Reads everything from what is stored, so that all tabs and all reloads see the same. */
const look = async (): Promise<Picture> => {
  await mock.load();
  const records: OperationRecord[] = [];
  for await (const record of api.operations.list()) records.push(record);
  const { ledger } = mock;
  const pageLog = readLog();
  const entries = records
    .map(record => ({ order: orderOfName(record.name), record }))
    .map(({ order, record }) => ({ order, record, steps: stepsOf(record, ledger, pageLog, order) }))
    .sort((a, b) => b.order - a.order);
  const order = currentOrder();
  return { order, amount: AMOUNT, current: entries.find(entry => entry.order === order)?.record, failure, counts: countsOf(records, ledger), entries };
};

const refresh = async (): Promise<Picture> => {
  const picture = await look();
  view(picture);
  return picture;
};

const chosenFault = (): Fault => (document.querySelector<HTMLInputElement>('[name=fault]:checked')?.value ?? 'nothing') as Fault;

/** The order whose first request from this page has its fault: a second click must not plant another. */
let planted: number | undefined;

const onPay = async (): Promise<void> => {
  failure = undefined;
  log('clicked', currentOrder());
  const { order, current } = await look();
  if (current?.state === 'succeeded') {
    nextOrder();
  } else {
    if (!current && planted !== order) plant(chosenFault());
    planted = order;
    await pay({ id: order, amount: AMOUNT });
  }
};

const onReset = async (): Promise<void> => {
  failure = undefined;
  planted = undefined;
  await api.operations.forget({ scope: CUSTOMER });
  await mock.reset();
  clearPageLog();
};

/** Does it, and shows what came of it or why it failed. */
const act = (action: () => Promise<void>) => async (): Promise<void> => {
  try {
    await action();
  } catch (error) {
    failure = String(error);
  }
  await refresh();
};

const listen = (id: string, action: () => Promise<void>): void => part(id).addEventListener('click', () => void act(action)());

const watch = async (): Promise<void> => {
  for (;;) {
    await refresh();
    await new Promise(resolve => setTimeout(resolve, LOOK_MS));
  }
};

log('opened', currentOrder());
await startPaymentApi(); // first, so that what is resumed meets the mock
api.operations.start(); // goes on with what an earlier page left behind
listen('pay', onPay);
listen('reset', onReset);
part('reload').addEventListener('click', () => location.reload());
document.body.dataset['ready'] = 'true';
void watch();
