/** What a customer wants to pay for. Amounts are in cents. */
export interface Order {
  readonly id: string;
  readonly amount: number;
}

/** What the payment API answers. */
export interface Charge {
  readonly id: string;
  readonly order: string;
  readonly amount: number;
}

const CUSTOMERS = 4;
const ORDERS_EACH = 3;

const orderOf = (number: number): Order => ({ id: `order-${String(number).padStart(2, '0')}`, amount: 1_000 + 150 * number });

export const orders: readonly Order[] = Array.from({ length: CUSTOMERS * ORDERS_EACH }, (_, index) => orderOf(index + 1));

/** Each customer checks out one order after the other, all customers at the same time. */
export const customers: readonly (readonly Order[])[] = Array.from({ length: CUSTOMERS }, (_, customer) =>
  orders.filter((_order, index) => index % CUSTOMERS === customer),
);
