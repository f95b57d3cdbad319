import type { Socket } from 'node:net';

/** What tells that a connection is over. */
const ENDINGS: ReadonlySet<unknown> = new Set(['close', 'end', 'error']);

const SUBSCRIPTIONS: ReadonlySet<string | symbol> = new Set(['on', 'once', 'addListener', 'prependListener', 'prependOnceListener']);

/** How a socket looks whose client is there. */
const OPEN: Readonly<Record<string | symbol, unknown>> = { destroyed: false, closed: false, errored: null, readable: true, writable: true };

/**
 * The socket of a request as it looks while the client is there, whether it is or not: a handler that asks, or that
 * `on-finished` asks for (body parsers and `sendFile` do), goes on when its client has left.
 *
 * @param destroy - called instead of destroying it: its user gives the answer up
 */
export const steadfastSocket = (socket: Socket, destroy: (error?: Error) => void): Socket => {
  const steadfast: Socket = new Proxy(socket, {
    get(target, name) {
      if (Object.hasOwn(OPEN, name)) return OPEN[name];
      if (name === 'destroy' || name === 'destroySoon') return (error?: Error) => (destroy(error), steadfast);
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (!SUBSCRIPTIONS.has(name)) return value.bind(target) as unknown;
      return (event: unknown, listener: unknown) => {
        if (!ENDINGS.has(event)) Reflect.apply(value, target, [event, listener]);
        return steadfast;
      };
    },
    // Through to the socket itself: its setters expect it as `this`.
    set: (target, name, value) => Reflect.set(target, name, value, target),
  });
  return steadfast;
};
