export interface Gate<T = void> {
  /** Resolves when the gate is opened, with what it was opened with. */
  readonly opened: Promise<T>;
  readonly open: (value: T) => void;
}

/** A promise and what settles it. */
export const gate = <T = void>(): Gate<T> => {
  let open!: (value: T) => void;
  const opened = new Promise<T>(resolve => (open = resolve));
  return { opened, open };
};
