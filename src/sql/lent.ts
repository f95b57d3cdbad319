/** What a handler hears that would end a transaction which is not its own. */
const notYours = (method: string): Error =>
  new Error(
    `${method}() was called on a transaction that samekey has opened, and ends: it is committed together with the answer, or rolled back when the handler fails. ` +
      `Leave ${method}() out; for a transaction of your own take a connection of your own.`,
  );

/**
 * Keeps these methods of a connection from those whom it is lent to, for as long as it is. Anybody else would get the
 * connection in the middle of the transaction, or its statements would be committed without the record.
 *
 * @returns what gives the methods back
 */
export const lend = (connection: object, methods: readonly string[]): (() => void) => {
  const taken = methods.filter(method => method in connection).map(method => [method, Object.getOwnPropertyDescriptor(connection, method)] as const);
  for (const [method] of taken) {
    const refuse = (): never => {
      throw notYours(method);
    };
    Object.defineProperty(connection, method, { value: refuse, configurable: true, writable: true });
  }
  return () => {
    for (const [method, own] of taken) {
      if (own) Object.defineProperty(connection, method, own);
      else Reflect.deleteProperty(connection, method);
    }
  };
};

/** The same for an object whose own maker goes on using it: a view of it without these methods. */
export const lentView = <Target extends object>(target: Target, methods: readonly string[]): Target =>
  new Proxy(target, {
    get(of, name) {
      if (typeof name !== 'string' || !methods.includes(name)) return Reflect.get(of, name) as unknown;
      return () => {
        throw notYours(name);
      };
    },
  });
