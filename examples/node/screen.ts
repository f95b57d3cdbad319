import type { WriteStream } from 'node:tty';
import type { DemoEvent } from './events.js';

/** Widest chart that is still read as one, and the narrowest that holds it, in columns. */
const WIDEST = 120;
const NARROWEST = 72;

/** ms between two frames. */
const FRAME_MS = 80;

export interface Screen {
  readonly columns: number;
  /** Tells of one event: as a line, where nothing can be redrawn. */
  tell(event: DemoEvent): void;
  /** Stops redrawing and leaves the last frame. */
  end(): void;
}

const WORDS: { readonly [Did in 'charged' | 'replayed' | 'running' | 'nothing']: string } = {
  charged: 'charged', replayed: 'answered again from the record', running: 'told to wait: still at work', nothing: 'not reached',
};

const describe = (event: DemoEvent): string | undefined => {
  if (event.kind === 'answered') return `${event.order} ${WORDS[event.outcome.did]}${event.outcome.delivered || event.outcome.did === 'nothing' ? '' : ', but nobody hears'}`;
  if (event.kind === 'killed') return 'shop     killed';
  return event.kind === 'started' ? 'shop     starts' : undefined;
};

/** Redraws a block on a terminal, prints plain lines elsewhere. */
export const openScreen = (out: WriteStream, frame: (columns: number) => string[]): Screen => {
  const columns = Math.min(WIDEST, Math.max(NARROWEST, (out.columns ?? WIDEST) - 1));
  // A block higher than the terminal cannot be redrawn: the cursor does not go back beyond the top.
  const redraws = out.isTTY && (out.columns ?? 0) > NARROWEST && (out.rows ?? 0) > frame(columns).length + 1;
  let height = 0;
  const draw = (): void => {
    const lines = frame(columns);
    out.write(`${height > 0 ? `\x1b[${height}A` : ''}\x1b[J${lines.join('\n')}\n`);
    height = lines.length;
  };
  const timer = redraws ? setInterval(draw, FRAME_MS) : undefined;
  return {
    columns,
    tell: event => {
      const text = redraws ? undefined : describe(event);
      if (text !== undefined) out.write(`${(event.at / 1_000).toFixed(2).padStart(6)} s  ${text}\n`);
    },
    end: () => {
      clearInterval(timer);
      if (redraws) draw();
      else out.write(`\n${frame(columns).join('\n')}\n`);
    },
  };
};
