/** Who sends a request once more by itself, as runtimes and proxies do: after the first was answered, or at the same time. */
export type DuplicateDelivery = 'sequential' | 'concurrent';

/** The client hears the second answer, like one whose runtime lost the first. */
export const deliverTwice = async <T>(how: DuplicateDelivery, deliver: () => Promise<T>): Promise<T> => {
  const first = deliver();
  // Nobody hears how it ends.
  const over = first.catch(() => {});
  if (how === 'sequential') await over;
  return deliver();
};
