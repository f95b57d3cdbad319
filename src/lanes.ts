/** Runs work, at most `limit` pieces at a time in each lane; the others wait for their turn. */
export type Lanes = <T>(lane: string, work: () => Promise<T>) => Promise<T>;

interface Lane {
  running: number;
  readonly waiting: (() => void)[];
}

export const createLanes = (limit: number): Lanes => {
  const lanes = new Map<string, Lane>();
  return async (name, work) => {
    const lane = lanes.get(name) ?? { running: 0, waiting: [] };
    lanes.set(name, lane);
    // Whoever leaves hands its place over, so the count stays.
    if (lane.running >= limit) await new Promise<void>(resolve => lane.waiting.push(resolve));
    else lane.running += 1;
    try {
      return await work();
    } finally {
      const next = lane.waiting.shift();
      if (next) next();
      else if (--lane.running === 0) lanes.delete(name);
    }
  };
};
