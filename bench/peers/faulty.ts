/** What goes wrong between a server process and its records: nothing, all of it, or the process is dead. */
export type Condition = 'well' | 'down' | 'dead';

export interface Faulty<T extends object> {
  /** The records as the process reaches them. */
  readonly records: T;
  turn(condition: Condition): void;
}

const silence = new Promise<never>(() => {});

/** An adapter of any library whose methods fail, or never come back, when they are told to. */
export const faulty = <T extends object>(adapter: T): Faulty<T> => {
  let condition: Condition = 'well';
  const guarded = (method: (...args: unknown[]) => unknown) => async (...args: unknown[]): Promise<unknown> => {
    if (condition === 'dead') return silence;
    if (condition === 'down') throw new Error('The records cannot be reached, as the case says.');
    const result = await method.apply(adapter, args);
    return (condition as Condition) === 'dead' ? silence : result;
  };
  const records = new Proxy(adapter, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? guarded(member as (...args: unknown[]) => unknown) : member;
    },
  });
  return { records, turn: next => void (condition = next) };
};
