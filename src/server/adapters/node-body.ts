import type { IncomingMessage } from 'node:http';

/** Nothing is to come: with chunked framing only the end tells that a body is empty. */
const isEmpty = ({ headers, complete, readableLength }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined && complete && readableLength === 0;

/** Feeds what arrives to `controller`, and returns what stops that. */
const lend = (incoming: IncomingMessage, controller: ReadableStreamDefaultController<Uint8Array>): (() => void) => {
  const chunks: Buffer[] = [];
  const stop = (): void => {
    incoming.off('readable', take).off('end', giveBack).off('error', fail).off('close', leave);
  };
  const giveBack = (): void => {
    stop();
    // In the same turn as the last read: once 'end' is emitted, nothing can be given back.
    for (const chunk of chunks.toReversed()) incoming.unshift(chunk);
    controller.close();
  };
  const take = (): void => {
    // A read of an ended, empty stream would emit 'end', which those who read after us wait for.
    while (incoming.readableLength > 0) {
      const chunk = incoming.read() as Buffer;
      chunks.push(chunk);
      controller.enqueue(chunk);
    }
    if (incoming.complete) giveBack();
  };
  const fail = (error: Error): void => {
    stop();
    controller.error(error);
  };
  const leave = (): void => fail(new Error('The client closed the connection before it had sent the whole body.'));
  incoming.on('readable', take).on('end', giveBack).on('error', fail).on('close', leave);
  return stop;
};

/**
 * The body as a stream that gives its bytes back when it has read them all: a body parser after us finds the request as
 * if nobody had touched it. Nothing is read before somebody asks.
 */
export const borrowedBody = (incoming: IncomingMessage): ReadableStream<Uint8Array> => {
  let stop: (() => void) | undefined;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (isEmpty(incoming)) controller.close();
      else stop ??= lend(incoming, controller);
    },
    cancel() {
      stop?.();
      // Node reads on by itself only what nobody has begun to read; until all is read the connection serves nothing else.
      incoming.resume();
    },
  }, { highWaterMark: 0 });
};

/** The body as a stream that begins to read when somebody asks. What is not wanted of it is read on and dropped. */
export const ownBody = (incoming: IncomingMessage): ReadableStream<Uint8Array> => {
  let chunks: AsyncIterator<Uint8Array> | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      chunks ??= incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks?.return?.();
      incoming.resume();
    },
  }, { highWaterMark: 0 });
};
