import { manualClock, type ManualClock } from '../../support/manual-clock.js';

/** A clock for a store whose own time cannot be moved: as it goes on, the rows get older. */
export const agingClock = (age: (ms: number) => Promise<void>): ManualClock => {
  const inner = manualClock();
  return {
    ...inner,
    get sleeping() {
      return inner.sleeping;
    },
    async advance(ms) {
      await age(ms);
      await inner.advance(ms);
    },
  };
};
