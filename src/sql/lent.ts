/** What a handler hears that would end a transaction which is not its own. */
const notYours = (method: string): Error =>
  new Error(
    `${method}() was called on a transaction that samekey has opened, and ends: it is committed together with the answer, or rolled back when the handler fails. ` +
      `Leave ${method}() out; for a transaction of your own take a connection of your own.`,
  );

/** What a handler hears that goes on after its end: what it does now would be part of somebody else's transaction, or of none. */
export const over = (): Error =>
  new Error('The transaction is over, and its connection belongs to somebody else now. Do what belongs to the answer before the handler returns or answers, and wait for it.');

/** A connection, or what a library makes of it, on loan. */
export interface Loan<Target> {
  /** To be used like the thing itself, but for the methods that would end the transaction, until the loan ends. */
  readonly view: Target;
  end(): void;
}

/** Lends a connection for a transaction that the lender ends. `endings`: methods that would end it, or give the connection back. */
export const lend = <Target extends object>(target: Target, endings: readonly string[]): Loan<Target> => {
  let isOver = false;
  const check = (): void => {
    if (isOver) throw over();
  };
  const view = new Proxy(target, {
    apply(of, self, values) {
      check();
      return Reflect.apply(of as unknown as () => unknown, self, values) as unknown;
    },
    get(of, name) {
      check();
      if (typeof name === 'string' && endings.includes(name)) {
        return () => {
          throw notYours(name);
        };
      }
      const value = Reflect.get(of, name, of) as unknown;
      // The thing itself works on with what it was told in time.
      return typeof value === 'function' && name !== 'constructor' ? (value.bind(of) as unknown) : value;
    },
    set: (of, name, value) => Reflect.set(of, name, value, of),
  });
  return { view, end: () => void (isOver = true) };
};
