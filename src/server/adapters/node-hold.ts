import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { shadow } from './node-shadow.js';
import { steadfastSocket } from './node-socket.js';

/** A request that stays readable when its client leaves. */
export interface HeldRequest {
  readonly incoming: IncomingMessage;
  /** What its handler may take for the connection. */
  readonly socket: Socket;
  /** Called when the handler destroys the connection. */
  whenDestroyed(listener: (error: Error) => void): void;
  /** Shows what became of the client meanwhile. */
  release(): void;
}

const destroyed = (): Error => new Error('The response was destroyed before it was complete.');

/** Holds a request from when it is there as a whole: a client that leaves later changes nothing for its handler. */
export const holdRequest = (incoming: IncomingMessage): HeldRequest => {
  let listener: ((error: Error) => void) | undefined;
  let leave: (() => void) | undefined;
  const { destroy } = incoming;
  const socket = steadfastSocket(incoming.socket, error => listener?.(error ?? destroyed()));
  const show = shadow(incoming, {
    socket: { value: socket, writable: true },
    // A server does so when its client leaves; a body that is buffered here could not be read any more. A stream does so
    // to itself when it has been read.
    destroy: {
      value: (error?: Error) => {
        leave = () => destroy.call(incoming, error);
        if (!incoming.complete || (error === undefined && incoming.readableEnded)) leave();
        return incoming;
      },
      writable: true,
    },
  });
  return {
    incoming,
    socket,
    whenDestroyed: one => void (listener = one),
    release() {
      show();
      leave?.();
      leave = undefined;
    },
  };
};

/** Holds a response as if its client were there. What it returns shows, and tells, what became of the client meanwhile. */
export const holdResponse = (outgoing: ServerResponse, { socket }: HeldRequest, giveUp: (error: Error) => void): (() => void) => {
  let hasLeft = false;
  const emit = outgoing.emit.bind(outgoing) as (event: string | symbol, ...args: unknown[]) => boolean;
  const keepClose = (): boolean => {
    hasLeft = true;
    return false;
  };
  const show = shadow(outgoing, {
    socket: { get: () => socket },
    connection: { get: () => socket },
    destroyed: { get: () => false, set: (value: boolean) => (hasLeft ||= value) },
    destroy: { value: (error?: Error) => (giveUp(error ?? destroyed()), outgoing), writable: true },
    emit: { value: (event: string | symbol, ...args: unknown[]) => (event === 'close' ? keepClose() : emit(event, ...args)), writable: true },
    // The package on-finished keeps one queue per response here: what the handler adds must not hear the real socket.
    __onFinished: { value: undefined, writable: true },
  });
  return () => {
    show();
    if (!hasLeft) return;
    outgoing.destroyed = true;
    outgoing.emit('close');
  };
};
