import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { writtenAnswer } from './node-answer.js';
import { holdResponse, type HeldRequest } from './node-hold.js';
import { headersNow, resetHeaders } from './node-headers.js';
import { doorOf, sendResponse } from './node-send.js';
import { shadow } from './node-shadow.js';

/** A response of node:http that its handler writes to as always, while the client gets nothing of it yet. */
export interface Capture {
  /** What the handler wrote, as soon as it begins. Rejects when the handler destroys the response instead. */
  readonly answer: Promise<Response>;
  /** Gives request and response back to those around the handler. What it still writes goes into its answer. */
  release(): void;
  /** Releases, and sends this response: the handler's own, or another one in its place. */
  send(response: Response): Promise<void>;
}

export interface CaptureOptions {
  /** Whether the answer is stored: then it must not be encoded for this one client. */
  readonly isStored: boolean;
}

/** Events of the end. Those who listen before the handler runs wait for the real ones; it gets its own when it has ended. */
const ENDINGS = ['finish', 'close'] as const;

type Listener = ((...args: unknown[]) => void) & { readonly listener?: (...args: unknown[]) => void };

/** Tells the listeners that the handler has brought, once, and lets them go. */
const tellingInner = (outgoing: ServerResponse): (() => void) => {
  const outer = new Map(ENDINGS.map(event => [event, new Set(outgoing.rawListeners(event))]));
  return () => {
    for (const event of ENDINGS) {
      const inner = (outgoing.rawListeners(event) as Listener[]).filter(listener => !outer.get(event)?.has(listener));
      for (const { listener, once = listener } of inner.map(one => ({ listener: one, once: one.listener }))) {
        outgoing.removeListener(event, once);
        Reflect.apply(once, outgoing, []);
      }
    }
  };
};

/** Asks for no encoding in the client's place: bodies are stored plain, and encoded per client around the handler. */
const askForPlain = ({ headers }: IncomingMessage): (() => void) =>
  headers['accept-encoding'] === undefined ? () => {} : shadow(headers, { 'accept-encoding': { value: 'identity', writable: true } });

/** Lays itself over the response of a held request, from now on and until it is released. */
export const captureResponse = (held: HeldRequest, outgoing: ServerResponse, { isStored }: CaptureOptions): Capture => {
  const before = headersNow(outgoing);
  const door = doorOf(outgoing);
  const tellInner = tellingInner(outgoing);
  let released = false;
  const written = writtenAnswer(outgoing, before, () => {
    tellInner();
    if (released) undoWriting();
  });
  const undoWriting = shadow(outgoing, {
    ...written.writing,
    // Past what stands around: it would keep a 'drain' for a stream of its own, which the handler would wait for.
    on: { value: EventEmitter.prototype.on, writable: true },
    addListener: { value: EventEmitter.prototype.on, writable: true },
  });
  const undoLooks = shadow(outgoing, written.looks);
  held.whenDestroyed(written.abandon);
  const showClient = holdResponse(outgoing, held, written.abandon);
  const showEncoding = isStored ? askForPlain(held.incoming) : () => {};
  let own: Response | undefined;
  const answer = written.answer.then(response => (own = response));

  const release = (): void => {
    if (released) return;
    released = true;
    showEncoding();
    undoLooks();
    if (written.isEnded || !written.isStarted) undoWriting();
    showClient();
    held.release();
  };
  return {
    answer,
    release,
    async send(response) {
      release();
      if (response !== own) resetHeaders(outgoing, before);
      await sendResponse(response, outgoing, { door, isLive: () => !written.isEnded });
    },
  };
};
